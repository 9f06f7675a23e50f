#!/usr/bin/env python3
"""Plain text of one domain from an unpacked package, as JSON lines {"text": ...}, a document each.

    extract.py DOMAIN ROOT OUTPUT [--max-bytes N] [--bundled]
    extract.py --list        the domains and packages of the demonstration
"""

import argparse
import gzip
import hashlib
import json
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import domains

SHORTEST = 80  # characters; less is a heading or a cross-reference


def clean(text):
    """One form of white space, no control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ").expandtabs(8)
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text)
    text = re.sub(r" +\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def digest(text):
    return hashlib.sha256(text.encode()).digest()


def select(documents, max_bytes):
    """Each text once, in order. When they are too many, they are taken by their hash until no
    further one fits: a sample that depends on nothing but the texts."""
    texts = {digest(text): text for text in documents if len(text) >= SHORTEST}
    chosen, size = set(), 0
    for key in sorted(texts):
        length = len(texts[key].encode())
        if size + length <= max_bytes:
            size += length
            chosen.add(key)
    return [text for key, text in texts.items() if key in chosen]


def write(path, texts):
    lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    data = lines.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, 9, mtime=0)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--bundled", action="store_true", help="a domain of the bundled corpus")
    parser.add_argument("--max-bytes", type=int, default=8_000_000)
    parser.add_argument("domain", nargs="?")
    parser.add_argument("root", nargs="?", type=Path)
    parser.add_argument("output", nargs="?", type=Path)
    options = parser.parse_args()
    if options.list:
        for domain, (_, package) in domains.DEMO.items():
            print(domain, package)
        return
    if options.output is None:
        parser.error("DOMAIN, ROOT and OUTPUT are needed")
    known = domains.BUNDLED if options.bundled else {k: v[0] for k, v in domains.DEMO.items()}
    if options.domain not in known:
        parser.error(f"no domain {options.domain!r}; known: {', '.join(known)}")
    documents = (clean(text) for text in known[options.domain](options.root))
    texts = select(documents, options.max_bytes)
    if not texts:
        parser.error(f"{options.root}: no text of {options.domain} found there")
    write(options.output, texts)
    size = sum(len(text.encode()) for text in texts)
    print(f"{options.domain}: {len(texts)} documents, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
