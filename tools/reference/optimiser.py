"""AdamW that passes over steps whose loss or gradient norm is an outlier; clipping; schedules."""

import math
import statistics

import torch

UNDECAYED = ("model.embed_tokens.weight",)


class Window:
    """Losses and gradient norms of the latest steps. A step is an outlier when either exceeds the
    mean of the values before it by more than `sigma` sample standard deviations; judged once half
    a window is held, the step's own values included."""

    def __init__(self, length=128, sigma=6.0, enabled=True):
        self.length, self.sigma, self.enabled = length, sigma, enabled
        self.losses, self.norms = [], []

    def takes(self, loss, norm):
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return False
        verdict = True
        if self.enabled and len(self.losses) + 1 >= max(2, self.length // 2):
            verdict = self.usual(loss, self.losses) and self.usual(norm, self.norms)
        self.losses = (self.losses + [loss])[-self.length :]
        self.norms = (self.norms + [norm])[-self.length :]
        return verdict

    def usual(self, value, before):
        return value - statistics.fmean(before) <= self.sigma * statistics.stdev(before)


class AdamW:
    def __init__(self, weights, beta1, beta2, eps, weight_decay):
        self.weights = weights
        self.beta1, self.beta2, self.eps, self.weight_decay = beta1, beta2, eps, weight_decay
        self.m = {name: torch.zeros_like(w) for name, w in weights.items()}
        self.v = {name: torch.zeros_like(w) for name, w in weights.items()}
        self.taken = 0

    @torch.no_grad()
    def step(self, lr, scale):
        """Decays, then moves the weights; gradients count `scale` times. Frees the gradients."""
        self.taken += 1
        step_size = lr / (1 - self.beta1**self.taken)
        correction = math.sqrt(1 - self.beta2**self.taken)
        for name, weight in self.weights.items():
            gradient = weight.grad.mul_(scale)
            if name not in UNDECAYED:
                weight.mul_(1 - lr * self.weight_decay)
            self.m[name].add_(gradient - self.m[name], alpha=1 - self.beta1)
            self.v[name].mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
            denominator = self.v[name].sqrt().div_(correction).add_(self.eps)
            weight.addcdiv_(self.m[name], denominator, value=-step_size)
        self.forget_gradients()

    def forget_gradients(self):
        for weight in self.weights.values():
            weight.grad = None


def gradient_norm(weights):
    """The L2 norm of all gradients together."""
    return math.sqrt(sum(w.grad.double().square().sum().item() for w in weights.values()))


def clip_scale(norm, largest):
    return min(1.0, largest / (norm + 1e-6)) if largest > 0 else 1.0


def learning_rate(kind, step, steps, peak, warmup, final_fraction):
    """Of optimiser step `step`, from 1."""
    if step < warmup:
        return peak * step / warmup
    if kind == "constant":
        return peak
    last = final_fraction * peak
    if step >= steps:
        return last
    share = (step - warmup) / (steps - warmup)
    if kind == "linear":
        return peak + (last - peak) * share
    if kind == "cosine":
        return last + (peak - last) * (1 + math.cos(math.pi * share)) / 2
    raise ValueError(f"schedule.kind: {kind!r} is not among constant, linear, cosine")
