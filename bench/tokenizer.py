#!/usr/bin/env python3
"""Bytes of text encoded a second on one core: Lockstep, with reading the text and writing the token
files, against Hugging Face's tokenizers and tiktoken (npm), encoding alone.

bench/tokenizer.py [--tokenizer tokenizer.json] [--text FILE.jsonl[.gz] ...]"""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import rounds

LEAST = 3
PACKAGES = {"tokenizers": "0.23.2", "tiktoken": "1.0.22"}
SCRIPT = Path(__file__).resolve().parent / "peers/tokenizers.mjs"


def installed_peers():
    """The directory with node_modules."""
    directory = rounds.scratch("npm")
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise rounds.Unmeasurable(f"{tool}: not there; tools/install_packages.sh nodejs npm")
    missing = [f"{name}@{version}" for name, version in PACKAGES.items()
               if not (directory / "node_modules" / name).exists()]  # fmt: skip
    if missing:
        print(f"npm install {' '.join(missing)}, into {directory}", flush=True)
        rounds.call(["npm", "install", "--silent", "--prefix", directory, *missing])
    return directory


def documents(paths, repeat, out):
    """Writes one JSON line a document; the bytes of text in them."""
    size = 0
    with open(out, "w", encoding="utf-8") as file:
        for path in paths:
            with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as f:
                if ".jsonl" in path.suffixes:
                    texts = [json.loads(line)["text"] for line in f]
                else:
                    texts = [f.read()]
            for text in filter(None, texts * repeat):
                file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
                size += len(text.encode())
    return size


def own_tokenizer(binary, texts):
    path = rounds.scratch("tokenizer") / "tokenizer.json"
    if not path.exists():
        print(f"training a tokenizer of 8192 ids, {path}", flush=True)
        rounds.call([binary, "tokenizer", "train", "--vocab-size", 8192, "-o", path, *texts])
    return path


def main():
    parser = rounds.options(__doc__, 5)
    parser.add_argument("--tokenizer", type=Path, help="default: one trained on the text")
    parser.add_argument("--text", type=Path, nargs="+",
                        default=sorted((rounds.ROOT / "assets/corpus").glob("*.jsonl.gz")))  # fmt: skip
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    peers = installed_peers()
    tokenizer = options.tokenizer or own_tokenizer(options.binary, options.text)
    with rounds.temporary() as directory:
        directory = Path(directory)
        text, out = directory / "text.jsonl", directory / "tokens"
        size = documents(options.text, options.repeat, text)
        print(f"{size / 1e6:.1f} MB of text, {tokenizer}")
        facts = {}

        def ours():
            shutil.rmtree(out, ignore_errors=True)
            found = rounds.lockstep(options.binary, "tokenize", "--tokenizer", tokenizer,
                                    "--threads", 1, "-o", out, f"text={text}")  # fmt: skip
            hashed = hashlib.sha256()
            for part in sorted(out.glob("text/train-*.npy")):
                hashed.update(part.read_bytes())
            facts["eos"] = found["end_of_text"]
            return {"value": size / found["seconds"] / 1e6, "ids": hashed.hexdigest()}

        def theirs(peer):
            environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
            cpu = min(os.sched_getaffinity(0))
            done = subprocess.run(
                ["taskset", "-c", str(cpu), "node", "--max-old-space-size=8192", SCRIPT, peer,
                 tokenizer.resolve(), text, str(facts["eos"])],
                cwd=peers, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                raise rounds.Unmeasurable(f"{peer}: {done.stderr.strip()[-300:]}")
            found = json.loads(done.stdout)
            return {"value": size / found["seconds"] / 1e6, "ids": found["sha256"]}

        sides = {"lockstep": ours}
        for peer in PACKAGES:
            sides[peer] = lambda name=peer: theirs(name)
        found = rounds.interleave(options.rounds, sides, "MB/s")
    same = []
    for peer in PACKAGES:
        equal = found[peer][0]["ids"] == found["lockstep"][0]["ids"]
        print(f"{peer}: {'the same ids' if equal else 'OTHER ids, so that it does not count'}")
        same += [peer] if equal else []
    if not same:
        raise rounds.Unmeasurable("no peer gives the same ids")
    fastest = max(rounds.median(found[peer]) for peer in same)
    return rounds.verdict("ratio", rounds.median(found["lockstep"]) / fastest, at_least=LEAST)


if __name__ == "__main__":
    rounds.run(main)
