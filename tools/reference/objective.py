"""The loss: cross-entropy and z-loss, each a mean over the targets of the whole batch."""

import torch

IGNORED = -100


def targets_of(tokens, kept=None):
    """Target t is token t + 1 of the same instance; the last position has none. Rows that `kept`
    [B] leaves out have none at all."""
    targets = torch.full_like(tokens, IGNORED)
    targets[:, :-1] = tokens[:, 1:]
    if kept is not None:
        targets[~kept] = IGNORED
    return targets


def token_losses(logits, targets):
    """Logits [.., V] and targets [..] -> cross-entropy and logsumexp of the positions that have a
    target, one after another."""
    counted = targets != IGNORED
    logits, targets = logits[counted], targets[counted]
    logsumexp = logits.logsumexp(-1)
    return logsumexp - logits.gather(-1, targets[:, None])[:, 0], logsumexp


def loss(logits, targets, z_weight):
    """Cross-entropy and weighted z-loss; their sum is what is minimised."""
    cross_entropy, logsumexp = token_losses(logits, targets)
    count = max(1, cross_entropy.numel())
    return cross_entropy.sum() / count, z_weight * logsumexp.square().sum() / count
