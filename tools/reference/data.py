"""Token files, instances, their order, and held-out documents."""

import csv
import gzip
from pathlib import Path

import numpy as np
import torch


def read_mix(path):
    """(label, path) of every line."""
    entries = []
    for line in Path(path).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            label, name = line.split(",", 1)
            entries.append((label.strip(), name.strip()))
    return entries


def open_tokens(path, token_type):
    """A headerless file of little-endian ids, or a NumPy file."""
    with open(path, "rb") as file:
        if file.read(6) == b"\x93NUMPY":
            return np.load(path, mmap_mode="r")
    return np.memmap(path, dtype={"uint16": "<u2", "uint32": "<u4"}[token_type], mode="r")


def repeats_itself(tokens, longest_period=13, count=32):
    """Whether `count` repeats of 1 to 13 tokens follow one another somewhere."""
    for period in range(1, min(longest_period, len(tokens) // 3) + 1):
        same = np.flatnonzero(tokens[period:] != tokens[:-period])
        edges = np.concatenate([[-1], same, [len(tokens) - period]])
        if np.diff(edges).max() - 1 >= (count - 1) * period:
            return True
    return False


class Instances:
    """Windows of `length` tokens, cut file by file; what is left of a file is dropped."""

    def __init__(self, mix, base, token_type, length):
        self.length = length
        self.files = [open_tokens(Path(base) / path, token_type) for _, path in read_mix(mix)]
        counts = [len(file) // length for file in self.files]
        self.offsets = np.concatenate([[0], np.cumsum(counts)])

    def __len__(self):
        return int(self.offsets[-1])

    def __getitem__(self, index):
        file = int(np.searchsorted(self.offsets, index, side="right")) - 1
        begin = (index - int(self.offsets[file])) * self.length
        return np.asarray(self.files[file][begin : begin + self.length]).astype(np.int64)


def epoch_order(count, seed, epoch):
    """OLMo-core's: NumPy's shuffle of 0..count-1 by PCG64(seed + epoch); epochs are from 1."""
    order = np.arange(count, dtype=np.uint32)
    np.random.Generator(np.random.PCG64(seed + epoch)).shuffle(order)
    return order


class Batches:
    """Batch k of an epoch is entries [k B, (k + 1) B) of its order; the tail is dropped. With
    `repeated` = n only the first n entries of epoch 1's order are used, again and again."""

    def __init__(self, instances, batch, seed, filtered=False, repeated=0):
        self.instances, self.batch, self.seed = instances, batch, seed
        self.filtered = filtered
        self.chosen = epoch_order(len(instances), seed, 1)[:repeated] if repeated else None
        self.count = len(instances) if self.chosen is None else len(self.chosen)
        if self.count < batch:
            raise ValueError(f"{self.count} instances do not fill a batch of {batch}")
        self.epoch, self.order = 0, None

    def __call__(self, step):
        """Tokens [B, T] of optimiser step `step` (from 1), and which rows count [B]."""
        per_epoch = self.count // self.batch
        epoch, k = divmod(step - 1, per_epoch)
        if self.epoch != epoch + 1:
            self.epoch = epoch + 1
            self.order = epoch_order(self.count, self.seed, self.epoch)
            if self.chosen is not None:
                self.order = self.chosen[self.order]
        rows = [self.instances[int(i)] for i in self.order[k * self.batch : (k + 1) * self.batch]]
        kept = [not (self.filtered and repeats_itself(row)) for row in rows]
        return torch.from_numpy(np.stack(rows)), torch.tensor(kept)


class Document:
    def __init__(self, label, index, tokens):
        self.label, self.index, self.tokens = label, index, tokens


def held_out(mix, base, token_type, length, most):
    """Documents by the .csv.gz beside each token file, cut at `length`; at most `most` of each
    label (0: all). `index` is the document's place in the whole set."""
    documents, index, taken = [], 0, {}
    for label, path in read_mix(mix):
        tokens = open_tokens(Path(base) / path, token_type)
        with gzip.open((Path(base) / path).with_suffix(".csv.gz"), "rt") as file:
            for row in csv.reader(file):
                begin, end = int(row[0]), int(row[1])
                if not most or taken.get(label, 0) < most:
                    taken[label] = taken.get(label, 0) + 1
                    cut = np.asarray(tokens[begin : min(end, begin + length)]).astype(np.int64)
                    documents.append(Document(label, index, torch.from_numpy(cut)))
                index += 1
    return documents
