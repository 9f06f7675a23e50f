"""Olmo 3 in PyTorch with what a patient user can do by hand: one product for q, k and v and one for
gate and up, rotation as a complex product, attention by blocks that leaves out what the mask hides,
and backward passes of norm, attention and loss written out."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function

EPS = 1e-6
QUERIES = 256  # of a block of attention
ROWS = 64  # of logits at a time


class RmsNorm(Function):
    """In and out in fp32."""

    @staticmethod
    def forward(ctx, x, gain):
        width = x.shape[-1]
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = norm.square_().div_(width).add_(EPS).rsqrt_()
        normed = x * scale
        ctx.save_for_backward(normed, scale, gain)
        return normed * gain

    @staticmethod
    def backward(ctx, dy):
        normed, scale, gain = ctx.saved_tensors
        width = dy.shape[-1]
        along = dy * normed
        dgain = along.view(-1, width).sum(0)
        mean = torch.mv(along.view(-1, width), gain).div_(-width).view(scale.shape)
        dx = dy * gain
        return dx.addcmul_(normed, mean).mul_(scale), dgain


class Attention(Function):
    """q, k and v [batch * heads, T, dim] of one dtype; queries of a block meet only keys that one of
    them may see."""

    @staticmethod
    def blocks(length, window, block):
        for begin in range(0, length, block):
            end = min(begin + block, length)
            yield begin, end, max(0, begin - window + 1) if window else 0

    @staticmethod
    def forward(ctx, q, k, v, window, block, masks):
        ctx.window, ctx.block = window, block
        ctx.scale = q.shape[-1] ** -0.5
        out, shares = torch.empty_like(q), []
        for begin, end, first in Attention.blocks(q.shape[1], window, block):
            mask = masks(begin, end, first, window, q.dtype)
            keys = k[:, first:end].transpose(1, 2)
            scores = torch.baddbmm(mask, q[:, begin:end], keys, alpha=ctx.scale)
            share = torch.softmax(scores, -1)
            out[:, begin:end] = torch.bmm(share, v[:, first:end])
            shares.append(share)
        ctx.save_for_backward(q, k, v, *shares)
        return out

    @staticmethod
    def backward(ctx, dout):
        q, k, v, *shares = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        places = Attention.blocks(q.shape[1], ctx.window, ctx.block)
        for (begin, end, first), share in zip(places, shares):
            part = dout[:, begin:end]
            dv[:, first:end] += torch.bmm(share.transpose(1, 2), part)
            dshare = torch.bmm(part, v[:, first:end].transpose(1, 2))
            dscores = torch._softmax_backward_data(dshare, share, -1, share.dtype).mul_(ctx.scale)
            dq[:, begin:end] = torch.bmm(dscores, k[:, first:end])
            dk[:, first:end] += torch.bmm(dscores.transpose(1, 2), q[:, begin:end])
        return dq, dk, dv, None, None, None


class HeadLoss(Function):
    """Mean cross-entropy over rows; its gradients are made on the way forward, where the logits are
    at hand."""

    @staticmethod
    def forward(ctx, hidden, weight, targets):
        logits = hidden @ weight.t()
        total, count = 0.0, len(targets)
        for begin in range(0, count, ROWS):
            rows = logits[begin : begin + ROWS]
            target = targets[begin : begin + ROWS, None]
            logp = torch.log_softmax(rows.float(), -1)
            total -= logp.gather(1, target).sum()
            gradient = logp.exp_()
            gradient.scatter_add_(1, target, torch.full(target.shape, -1.0))
            rows.copy_(gradient.mul_(1 / count))
        ctx.save_for_backward(logits @ weight, logits.t() @ hidden)
        return total / count

    @staticmethod
    def backward(ctx, _):
        dhidden, dweight = ctx.saved_tensors
        return dhidden, dweight, None


class Model(nn.Module):
    def __init__(self, shape, precision):
        super().__init__()
        self.shape = shape
        self.dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        d, f = shape.width, shape.mlp

        def matrix(rows, columns):
            weight = torch.empty(rows, columns)
            return nn.Parameter(nn.init.trunc_normal_(weight, std=0.02, a=-0.06, b=0.06))

        self.embedding, self.head = (matrix(shape.vocabulary, d) for _ in range(2))
        self.blocks = nn.ModuleList(
            nn.ParameterDict(
                {"qkv": matrix(3 * d, d), "o": matrix(d, d), "gate_up": matrix(2 * f, d),
                 "down": matrix(d, f)}
                | {name: nn.Parameter(torch.ones(d))
                   for name in ("q_norm", "k_norm", "attention_norm", "mlp_norm")}
            )
            for _ in range(shape.layers)
        )  # fmt: skip
        self.norm = nn.Parameter(torch.ones(d))
        dim = d // shape.heads
        angles = torch.arange(shape.length)[:, None] * 500000.0 ** (-torch.arange(0, dim, 2) / dim)
        # [T, 1, dim / 2]; dimensions 2i and 2i + 1 turn together, which differs from the published
        # layout by a permutation of the rows of q and k.
        self.turns = torch.polar(torch.ones_like(angles), angles)[:, None]
        self.masks = {}

    def mask(self, begin, end, first, window, dtype):
        """What is added to the scores of a block; blocks of one form share it."""
        key = (end - begin, begin - first, window)
        if key not in self.masks:
            distance = torch.arange(begin, end)[:, None] - torch.arange(first, end)
            seen = (distance >= 0) & ((distance < window) if window else True)
            mask = torch.zeros(distance.shape).masked_fill_(~seen, -torch.inf)
            self.masks[key] = mask.to(dtype)
        return self.masks[key]

    def product(self, x, weight):
        return F.linear(x.to(self.dtype), weight.to(self.dtype))

    def heads(self, x, turn):
        """[B, T, d] -> [B * heads, T, dim]"""
        batch, length, d = x.shape
        x = x.view(batch, length, self.shape.heads, -1)
        if turn:
            pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
            x = torch.view_as_real(pairs * self.turns).flatten(-2)
        return x.to(self.dtype).transpose(1, 2).reshape(-1, length, d // self.shape.heads)

    def attention(self, x, block, window):
        batch, length, d = x.shape
        q, k, v = self.product(x, block["qkv"]).split(d, -1)
        q = self.heads(RmsNorm.apply(q.float(), block["q_norm"]), turn=True)
        k = self.heads(RmsNorm.apply(k.float(), block["k_norm"]), turn=True)
        queries = min(QUERIES, window) if window else QUERIES
        out = Attention.apply(q, k, self.heads(v, turn=False), window, queries, self.mask)
        out = out.view(batch, self.shape.heads, length, -1).transpose(1, 2)
        return self.product(out.reshape(batch, length, d), block["o"])

    def mlp(self, x, block):
        gate, up = self.product(x, block["gate_up"]).chunk(2, -1)
        return self.product(F.silu(gate) * up, block["down"])

    def loss(self, tokens):
        """The mean over all targets; call backward() on it."""
        x = F.embedding(tokens, self.embedding)
        for block, window in zip(self.blocks, self.shape.windows()):
            window = 0 if window >= self.shape.length else window
            out = self.attention(x, block, window)
            x = x + RmsNorm.apply(out.float(), block["attention_norm"])
            x = x + RmsNorm.apply(self.mlp(x, block).float(), block["mlp_norm"])
        hidden = RmsNorm.apply(x[:, :-1].reshape(-1, self.shape.width), self.norm)
        weight = self.head.to(self.dtype)
        return HeadLoss.apply(hidden.to(self.dtype), weight, tokens[:, 1:].flatten())
