"""Olmo 3 in PyTorch as one writes it: autograd, autocast, attention in eager mode."""

import torch
import torch.nn.functional as F
from torch import nn

EPS = 1e-6


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + EPS)
        return self.gain * y.to(x.dtype)


def rotate(x, cosine, sine):
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


class Block(nn.Module):
    def __init__(self, shape, window):
        super().__init__()
        d, self.heads, length = shape.width, shape.heads, shape.length
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(d, shape.mlp, bias=False) for _ in range(2))
        self.down = nn.Linear(shape.mlp, d, bias=False)
        self.q_norm, self.k_norm = RmsNorm(d), RmsNorm(d)
        self.attention_norm, self.mlp_norm = RmsNorm(d), RmsNorm(d)
        distance = torch.arange(length)[:, None] - torch.arange(length)
        seen = (distance >= 0) & ((distance < window) if window else True)
        self.register_buffer("mask", torch.zeros(length, length).masked_fill(~seen, -torch.inf))

    def attention(self, x, cosine, sine):
        batch, length, d = x.shape

        def split(y):
            return y.view(batch, length, self.heads, -1).transpose(1, 2)

        q = rotate(split(self.q_norm(self.q(x))), cosine, sine)
        k = rotate(split(self.k_norm(self.k(x))), cosine, sine)
        v = split(self.v(x))
        scores = q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5 + self.mask
        mixed = scores.softmax(-1) @ v
        return self.o(mixed.transpose(1, 2).reshape(batch, length, d))

    def forward(self, x, cosine, sine):
        x = x + self.attention_norm(self.attention(x, cosine, sine))
        return x + self.mlp_norm(self.down(F.silu(self.gate(x)) * self.up(x)))


class Model(nn.Module):
    def __init__(self, shape, precision):
        super().__init__()
        self.bf16 = precision == "bf16"
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape, window) for window in shape.windows())
        self.norm = RmsNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        dim = shape.width // shape.heads
        inverse = 500000.0 ** (-torch.arange(0, dim, 2) / dim)
        angles = torch.arange(shape.length)[:, None] * inverse
        angles = torch.cat([angles, angles], -1)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.trunc_normal_(p, std=0.02, a=-0.06, b=0.06)

    def loss(self, tokens):
        """The mean over all targets; call backward() on it."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            x = self.embedding(tokens)
            for block in self.blocks:
                x = block(x, self.cosine, self.sine)
            logits = self.head(self.norm(x))
        logits = logits[:, :-1].float()
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
