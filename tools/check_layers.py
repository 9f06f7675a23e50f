#!/usr/bin/env python3
"""Folders include each other only as this table says; README.md has the picture."""

import re
import sys
from pathlib import Path

ALLOWED = {
    "base": "",
    "config": "base",
    "io": "base",
    "tensor": "base",
    "tokenizer": "io base",
    "ops": "tensor base",
    "data": "tokenizer io config base",
    "model": "ops tensor config base",
    "optim": "ops tensor config base",
    "comm": "tensor base",
    "parallel": "comm optim model ops tensor config base",
    "checkpoint": "parallel comm optim model tensor io config base",
    "eval": "model data tokenizer parallel comm ops tensor io config base",
    "train": "checkpoint eval data parallel comm optim model ops tensor tokenizer io config base",
    "report": "eval train checkpoint data io config base",
    "cli": "report train eval checkpoint parallel comm optim model data ops tensor tokenizer io "
    "config base",
    "bench": "*",
    "tests": "*",
}

# Third-party headers that stay in one place, so that the rest does not depend on them.
ONLY_IN = {
    r"CLI/": "cli",
    r"httplib\.h": "report",
    r"toml\+\+/": "config",
    r"pcre2\.h": "tokenizer",
    r"utf8proc\.h": "tokenizer",
    r"zstd\.h|zlib\.h": "io",
    r"oneapi/dnnl/": "ops",
    r"cuda_runtime\.h|cublas|nccl\.h": "ops tensor comm",
    r"mpi\.h": "comm",
}
# Tests may look deeper: a unit test of a kernel reads golden files, say.
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
EXITS = re.compile(r"\bstd::(?:cout|cerr|exit|abort|printf)\b|\b(?:printf|exit|abort)\s*\(")


def check(root):
    problems = []
    for folder, allowed in ALLOWED.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu") or not path.is_file():
                continue
            text = path.read_text(encoding="utf-8")
            name = path.relative_to(root)
            test = path.stem.endswith("_test")
            for header in INCLUDE.findall(text):
                target = header.split("/")[0]
                if target in ALLOWED and "/" in header and allowed != "*" and not test:
                    if target != folder and target not in allowed.split():
                        problems.append(f"{name}: {folder} must not include {header}")
                for pattern, folders in ONLY_IN.items():
                    if re.match(pattern, header) and folder not in folders.split() + ["bench"]:
                        problems.append(f"{name}: {header} belongs in {folders} only")
            if folder not in ("cli", "bench", "tests") and not test:
                code = re.sub(r"//.*|\"(?:\\.|[^\"\\])*\"", "", text)
                if EXITS.search(code):
                    problems.append(f"{name}: only cli/ prints or exits")
    return problems


if __name__ == "__main__":
    found = check(Path(__file__).resolve().parent.parent)
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
