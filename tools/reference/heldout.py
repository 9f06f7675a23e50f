"""Loss of every held-out document, by domain."""

import hashlib
import math

import torch

import objective

POSITIONS = 4096  # run at a time


def groups(documents):
    """Documents with a target, those of similar length together: (documents, tokens [B, T] padded
    behind)."""
    waiting = sorted((d for d in documents if len(d.tokens) > 1), key=lambda d: -len(d.tokens))
    while waiting:
        rows = waiting[: max(1, POSITIONS // len(waiting[0].tokens))]
        waiting = waiting[len(rows) :]
        tokens = torch.zeros(len(rows), len(rows[0].tokens), dtype=torch.int64)
        for r, document in enumerate(rows):
            tokens[r, : len(document.tokens)] = document.tokens
        yield rows, tokens


def fingerprint(documents):
    digest = hashlib.sha256()
    for document in documents:
        digest.update(f"{document.label}\n{document.index}\n".encode())
        digest.update(document.tokens.numpy().tobytes())
    return "sha256:" + digest.hexdigest()


def document_losses(model, documents, progress):
    """Index of the document -> cross-entropy summed over its targets, in nats."""
    losses = {document.index: 0.0 for document in documents}
    done, all_tokens = 0, sum(len(document.tokens) for document in documents)
    for rows, tokens in groups(documents):
        hidden = model.hidden(tokens)
        for r, document in enumerate(rows):
            count = len(document.tokens)
            logits = model.head(hidden[r, : count - 1])[:, : model.columns]
            token_ce, _ = objective.token_losses(logits, document.tokens[1:])
            losses[document.index] = token_ce.double().sum().item()
        done += sum(len(document.tokens) for document in rows)
        progress(done / all_tokens)
    return losses


def _exp(value):
    return math.exp(value) if value is not None else None


def _ratio(value, count):
    return value / count if count else None


def domain_entry(label, records):
    """`records`: (tokens, targets, bytes, ce) of each document."""
    tokens, targets, size, ce = (sum(column) for column in zip(*records))
    loss, olmo_core = _ratio(ce, targets), _ratio(ce, tokens)
    return {
        "label": label, "documents": len(records), "tokens": tokens, "targets": targets,
        "bytes": size, "loss": loss, "perplexity": _exp(loss),
        "bits_per_byte": _ratio(ce / math.log(2), size), "loss_olmo_core": olmo_core,
        "perplexity_olmo_core": _exp(olmo_core),
    }  # fmt: skip


def evaluate(model, documents, byte_lengths, length, progress):
    """The surface of an evaluation file."""
    losses = document_losses(model, documents, progress)
    by_document, domains = [], {}
    for document in documents:
        targets = document.tokens[1:].tolist()
        size, ce = sum(byte_lengths[t] for t in targets), losses[document.index]
        by_document.append({"label": document.label, "document": document.index,
                            "targets": len(targets), "bytes": size, "ce": ce})  # fmt: skip
        domains.setdefault(document.label, []).append(
            (len(document.tokens), len(targets), size, ce)
        )
    return {
        "data_fingerprint": fingerprint(documents),
        "sequence_length": length,
        "domains": [domain_entry(label, records) for label, records in domains.items()],
        "by_document": by_document,
    }
