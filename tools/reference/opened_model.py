"""A Hugging Face directory as a model that only runs forward."""

from pathlib import Path

import safetensors_file
from model import BREAKS, Olmo3, Shape


def open_model(directory, precision, broken=None):
    weights = {name: w.float() for name, w in safetensors_file.read(Path(directory)).items()}
    return Olmo3(Shape.read(directory), weights, precision, broken if broken in BREAKS else None)
