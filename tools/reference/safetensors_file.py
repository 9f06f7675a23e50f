"""Safetensors files: an 8-byte little-endian length, a JSON header, the tensors' bytes."""

import json
import os
import struct

import torch

_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "I64": torch.int64,
    "I32": torch.int32,
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


def read(path):
    """Name -> tensor, of a file or of all the model*.safetensors of a directory."""
    if os.path.isdir(path):
        tensors = {}
        for name in sorted(os.listdir(path)):
            if name.startswith("model") and name.endswith(".safetensors"):
                tensors.update(read(os.path.join(path, name)))
        if not tensors:
            raise FileNotFoundError(f"{path}: no model.safetensors")
        return tensors
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = _TYPES[entry["dtype"]]
        if end == begin:
            tensors[name] = torch.empty(entry["shape"], dtype=dtype)
            continue
        size = torch.empty((), dtype=dtype).element_size()
        flat = torch.frombuffer(data, dtype=dtype, count=(end - begin) // size, offset=begin)
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors


def write(path, tensors):
    """The file appears whole or not at all."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    unfinished = f"{path}.tmp"
    with open(unfinished, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            flat = tensor.detach().contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    os.replace(unfinished, path)
