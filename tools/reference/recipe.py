"""The keys of a Lockstep recipe that the reference implementation knows, and their defaults."""

import tomllib
from pathlib import Path

# A key that is not here is refused when it could change the training, ignored when it could not.
_DEFAULTS = {
    "run.name": "run",
    "model.vocab_size": None,
    "data.mix": None,
    "data.base_dir": "",
    "data.tokenizer_file": "",
    "data.token_type": "uint32",
    "data.sequence_length": 8192,
    "data.order": "feistel",
    "data.seed": 34521,
    "data.filter.enabled": False,
    "batch.instances": None,
    "train.steps": None,
    "train.z_loss": 1e-5,
    "train.precision": "bf16",
    "optim.lr": 3e-4,
    "optim.beta1": 0.9,
    "optim.beta2": 0.95,
    "optim.eps": 1e-8,
    "optim.weight_decay": 0.1,
    "optim.grad_clip": 1.0,
    "optim.skip_step.enabled": True,
    "optim.skip_step.window": 128,
    "optim.skip_step.sigma": 6.0,
    "schedule.kind": "cosine",
    "schedule.warmup_steps": 0,
    "schedule.final_fraction": 0.1,
    "eval.mix": "",
    "eval.max_documents": 0,
}
# Read from config.json, or of no account for what is computed.
_ELSEWHERE = ("model.", "run.", "init.", "checkpoint.", "eval.", "sample.", "metrics.", "cpu.",
              "profile.", "batch.microbatch", "data.cache_dir", "data.prefetch", "train.remat",
              "train.offload", "train.stop_at", "train.max_skipped_in_row")  # fmt: skip


def _flat(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def read(path, overrides):
    """Key -> value of the recipe with KEY=VALUE overrides on top."""
    values = dict(_DEFAULTS)
    given = dict(_flat(tomllib.loads(Path(path).read_text())))
    for override in overrides:
        key, _, text = override.partition("=")
        try:
            given[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            given[key] = text
    for key, value in given.items():
        if key not in values and not key.startswith(_ELSEWHERE):
            raise ValueError(f"{path}: {key}: the reference implementation has no such key")
        values[key] = value
    missing = [key for key in _DEFAULTS if values[key] is None]
    if missing:
        raise ValueError(f"{path}: needs {', '.join(missing)}")
    if values["data.order"] != "olmo-core":
        raise ValueError(f"{path}: data.order is {values['data.order']!r}; the reference "
                         "implementation knows olmo-core alone")  # fmt: skip
    return values
