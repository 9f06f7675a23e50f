"""Byte-level BPE of a Hugging Face tokenizer.json, as the demonstration's tokenizers have it: one
regular expression that cuts text into words, then merges within a word by rank."""

import json
import re
import sys
import unicodedata
from pathlib import Path


def _letters_to_bytes():
    """GPT-2's alphabet: a printable character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    table = {chr(b): b for b in plain}
    return table | {chr(256 + i): b for i, b in enumerate(others)}


def _category(major):
    """All characters whose category starts with `major`, as ranges of a character class."""
    ranges, begin = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code))[0] == major
        if inside and begin is None:
            begin = code
        elif not inside and begin is not None:
            ranges.append((begin, code - 1))
            begin = None
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in ranges)


_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def compile_pattern(pattern):
    """Python's `re` has no classes by Unicode category and another idea of white space: they are
    written out."""
    classes = {r"\p{L}": _category("L"), r"\p{N}": _category("N"), r"\s": _SPACE}
    result, inside, i = [], False, 0
    while i < len(pattern):
        name = next((c for c in (*classes, r"\S") if pattern.startswith(c, i)), None)
        if name == r"\S":
            result.append(f"[^{_SPACE}]")
        elif name:
            result.append(classes[name] if inside else f"[{classes[name]}]")
        else:
            name = pattern[i : i + 2] if pattern[i] == "\\" else pattern[i]
            inside = name == "[" or (inside and name != "]")
            result.append(name)
        i += len(name)
    return re.compile("".join(result))


class Tokenizer:
    def __init__(self, path):
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        split, byte_level = document["pre_tokenizer"]["pretokenizers"]
        if split["type"] != "Split" or byte_level["type"] != "ByteLevel" or document["normalizer"]:
            raise ValueError(f"{path}: wanted a Split and a ByteLevel pre-tokenizer, no normalizer")
        letters = _letters_to_bytes()
        model = document["model"]
        self.added = {token["content"]: token["id"] for token in document["added_tokens"]}
        self.ids = {
            bytes(letters[c] for c in text): i
            for text, i in model["vocab"].items()
            if text not in self.added
        }
        self.ranks = {}
        for rank, merge in enumerate(model["merges"]):
            a, b = merge.split(" ") if isinstance(merge, str) else merge
            pair = tuple(bytes(letters[c] for c in part) for part in (a, b))
            self.ranks.setdefault(pair, rank)
        self.pattern = compile_pattern(split["pattern"]["Regex"])
        self.special = re.compile("|".join(map(re.escape, self.added)) or r"(?!)")
        self.words = {}

    def byte_lengths(self, size):
        """Bytes of text that each id stands for; 0 for added tokens."""
        lengths = [0] * size
        for text, i in self.ids.items():
            lengths[i] = len(text)
        return lengths

    def encode(self, text):
        ids, begin = [], 0
        for match in self.special.finditer(text):
            ids += self.encode_plain(text[begin : match.start()])
            ids.append(self.added[match.group()])
            begin = match.end()
        return ids + self.encode_plain(text[begin:])

    def encode_plain(self, text):
        ids, begin = [], 0
        for match in self.pattern.finditer(text):
            if match.start() > begin:
                ids += self.word(text[begin : match.start()])
            ids += self.word(match.group())
            begin = match.end()
        return ids + (self.word(text[begin:]) if begin < len(text) else [])

    def word(self, text):
        if text not in self.words:
            parts = [bytes([b]) for b in text.encode("utf-8")]
            while len(parts) > 1:
                best = min(
                    range(len(parts) - 1),
                    key=lambda i: self.ranks.get((parts[i], parts[i + 1]), sys.maxsize),
                )
                if (parts[best], parts[best + 1]) not in self.ranks:
                    break
                pair = (parts[best], parts[best + 1])
                merged, i = [], 0
                while i < len(parts):
                    if tuple(parts[i : i + 2]) == pair:
                        merged.append(parts[i] + parts[i + 1])
                        i += 2
                    else:
                        merged.append(parts[i])
                        i += 1
                parts = merged
            self.words[text] = [self.ids[part] for part in parts]
        return self.words[text]
