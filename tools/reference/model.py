"""Olmo 3's forward pass in plain PyTorch; gradients come from autograd.

A block normalises what attention and MLP put out, not what they read. Queries and keys are
normalised over the whole projection before the heads are split, then rotated.
"""

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
import torch.nn.functional as F

# Errors that can be made on purpose, to see that a comparison notices them.
BREAKS = ("rope-theta", "window", "prenorm")


@dataclass(frozen=True)
class Shape:
    """What config.json says about a model."""

    vocab_size: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    eps: float
    theta: float
    window: int
    layer_types: tuple
    eos: int
    context_length: int
    yarn: dict = field(default_factory=dict)  # of full-attention layers

    @staticmethod
    def read(directory):
        config = json.loads((Path(directory) / "config.json").read_text())
        layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
        types = config.get("layer_types") or [
            "full_attention" if (i + 1) % 4 == 0 else "sliding_attention" for i in range(layers)
        ]
        theta, scaling = config.get("rope_theta"), config.get("rope_scaling") or {}
        parameters = config.get("rope_parameters") or {}
        full = parameters.get("full_attention", parameters)
        if full:
            theta = full["rope_theta"]
            scaling = full if full.get("rope_type") == "yarn" else {}
        return Shape(
            vocab_size=config["vocab_size"],
            d_model=config["hidden_size"],
            n_heads=heads,
            n_kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            eps=config["rms_norm_eps"],
            theta=float(theta),
            window=config.get("sliding_window") or 0,
            layer_types=tuple(types),
            eos=config["eos_token_id"],
            context_length=config["max_position_embeddings"],
            yarn=scaling,
        )


def rms_norm(x, gain, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def yarn_frequencies(inverse, head_dim, theta, yarn):
    """Frequencies stretched by the factor where a wave turns seldom over the original context."""
    original, factor = yarn["original_max_position_embeddings"], yarn["factor"]

    def dimension(turns):
        return head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low = max(math.floor(dimension(yarn.get("beta_fast") or 32)), 0)
    high = min(math.ceil(dimension(yarn.get("beta_slow") or 1)), head_dim // 2 - 1)
    ramp = (torch.arange(head_dim // 2).float() - low) / max(high - low, 1e-3)
    ramp = ramp.clamp(0, 1)
    return inverse / factor * ramp + inverse * (1 - ramp)


def rope_tables(length, head_dim, theta, yarn):
    """Cosine and sine [length, head_dim] of position times frequency, all in fp32."""
    inverse = 1.0 / theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
    scale = 1.0
    if yarn:
        inverse = yarn_frequencies(inverse, head_dim, theta, yarn)
        scale = yarn.get("attention_factor") or 0.1 * math.log(yarn["factor"]) + 1
    angles = torch.arange(length).float()[:, None] * inverse
    angles = torch.cat([angles, angles], -1)
    return angles.cos() * scale, angles.sin() * scale


def rotate(x, cosine, sine):
    """x [..., T, head_dim]: dimension i turns with i + head_dim / 2."""
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


class Olmo3:
    """`weights` by Hugging Face name, fp32. In bf16 the operands of every matrix product are
    rounded to bf16, as autocast does; norms, softmax, residual, logits and loss are in fp32."""

    def __init__(self, shape, weights, precision="fp32", broken=None):
        if broken == "rope-theta":
            shape = replace(shape, theta=10000.0)
        self.shape = shape
        self.weights = weights
        self.bf16 = precision == "bf16"
        self.prenorm = broken == "prenorm"
        # Keys that a sliding layer's query sees, itself included.
        self.window = shape.window + (1 if broken == "window" else 0)
        self.tables = {}
        self.columns = shape.vocab_size  # that count in evaluation

    def product(self, x, name):
        weight = self.weights[name]
        if self.bf16:
            return F.linear(x.bfloat16(), weight.bfloat16()).float()
        return F.linear(x, weight)

    def mask(self, length, kind):
        """True where a key must not be seen, and the tables of the layer's rotation."""
        key = (length, kind)
        if key not in self.tables:
            distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
            hidden = distance < 0
            sliding = kind == "sliding_attention" and self.window > 0
            if sliding:
                hidden = hidden | (distance >= self.window)
            yarn = {} if kind == "sliding_attention" else self.shape.yarn
            self.tables[key] = (
                hidden,
                *rope_tables(length, self.shape.head_dim, self.shape.theta, yarn),
            )
        return self.tables[key]

    def attention(self, x, layer):
        shape, name = self.shape, f"model.layers.{layer}.self_attn"
        batch, length, _ = x.shape
        q = self.product(x, f"{name}.q_proj.weight")
        k = self.product(x, f"{name}.k_proj.weight")
        v = self.product(x, f"{name}.v_proj.weight")
        q = rms_norm(q, self.weights[f"{name}.q_norm.weight"], shape.eps)
        k = rms_norm(k, self.weights[f"{name}.k_norm.weight"], shape.eps)

        def heads(y, count):
            return y.view(batch, length, count, shape.head_dim).transpose(1, 2)

        hidden, cosine, sine = self.mask(length, shape.layer_types[layer])
        q = rotate(heads(q, shape.n_heads), cosine, sine)
        k = rotate(heads(k, shape.n_kv_heads), cosine, sine)
        v = heads(v, shape.n_kv_heads)
        repeats = shape.n_heads // shape.n_kv_heads
        if repeats > 1:
            k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        if self.bf16:
            q, k, v = q.bfloat16(), k.bfloat16(), v.bfloat16()
        scores = (q @ k.transpose(-1, -2)).float() * shape.head_dim**-0.5
        share = scores.masked_fill(hidden, -math.inf).softmax(-1)
        mixed = ((share.bfloat16() if self.bf16 else share) @ v).float()
        mixed = mixed.transpose(1, 2).reshape(batch, length, -1)
        return self.product(mixed, f"{name}.o_proj.weight")

    def mlp(self, x, layer):
        name = f"model.layers.{layer}.mlp"
        gate = self.product(x, f"{name}.gate_proj.weight")
        up = self.product(x, f"{name}.up_proj.weight")
        return self.product(F.silu(gate) * up, f"{name}.down_proj.weight")

    def hidden(self, tokens):
        """tokens [B, T] -> what the head reads [B, T, D], normalised."""
        weights, eps = self.weights, self.shape.eps
        x = F.embedding(tokens, weights["model.embed_tokens.weight"])
        for layer in range(len(self.shape.layer_types)):
            name = f"model.layers.{layer}"
            after_attention = weights[f"{name}.post_attention_layernorm.weight"]
            after_mlp = weights[f"{name}.post_feedforward_layernorm.weight"]
            if self.prenorm:
                x = x + self.attention(rms_norm(x, after_attention, eps), layer)
                x = x + self.mlp(rms_norm(x, after_mlp, eps), layer)
            else:
                x = x + rms_norm(self.attention(x, layer), after_attention, eps)
                x = x + rms_norm(self.mlp(x, layer), after_mlp, eps)
        return rms_norm(x, weights["model.norm.weight"], eps)

    def head(self, hidden):
        """Logits in fp32: in bf16 the operands are rounded, the sums are not."""
        weight = self.weights["lm_head.weight"]
        if self.bf16:
            return F.linear(hidden.bfloat16().float(), weight.bfloat16().float())
        return F.linear(hidden, weight)

    def logits(self, tokens):
        return self.head(self.hidden(tokens))
