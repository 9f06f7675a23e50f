#!/usr/bin/python3
"""write_golden.py MODEL_DIR -o FILE: input_ids and logits for `lockstep parity --golden FILE`, by
this implementation, with an error made on purpose when asked."""

import argparse

import torch

import safetensors_file
from data import held_out
from model import BREAKS
from opened_model import open_model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="Hugging Face directory")
    parser.add_argument("-o", "--out", required=True)
    parser.add_argument("--mix", required=True, help="manifest of held-out token files")
    parser.add_argument("--base-dir", default="")
    parser.add_argument("--token-type", default="uint32")
    parser.add_argument("--length", type=int, required=True, help="tokens of a window")
    parser.add_argument("--windows", type=int, default=2)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--break", dest="broken", choices=BREAKS)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    documents = held_out(options.mix, options.base_dir, options.token_type, options.length, 0)
    long = [d.tokens for d in documents if len(d.tokens) == options.length]
    if len(long) < options.windows:
        parser.error(f"{options.mix}: {len(long)} documents of {options.length} tokens or more")
    tokens = torch.stack(long[: options.windows])
    with torch.no_grad():
        logits = open_model(options.model, options.precision, options.broken).logits(tokens)
    safetensors_file.write(options.out, {"input_ids": tokens, "logits": logits})


if __name__ == "__main__":
    main()
