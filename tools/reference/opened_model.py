"""A Hugging Face directory as a model that only runs forward."""

from pathlib import Path

import safetensors_file
from model import BREAKS, Olmo3, Shape


def open_model(directory, precision, broken=None, columns=None):
    """`columns`: token ids of the vocabulary, where rows behind them pad it."""
    weights = {name: w.float() for name, w in safetensors_file.read(Path(directory)).items()}
    model = Olmo3(Shape.read(directory), weights, precision, broken if broken in BREAKS else None)
    model.columns = columns or model.shape.vocab_size
    return model
