#!/usr/bin/env python3
"""The demonstration: text, tokenizer, token files, a training run that is killed and resumed,
held-out loss by domain, export, a continuation. Exits with 1 when anything is not as promised."""

import argparse
import array
import csv
import gzip
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import text
from kill import run_and_kill

ROOT = text.ROOT
RECIPE = ROOT / "recipes/demo.toml"
SEED = 1  # of the choice of held-out documents
MOST_DOCUMENTS = 100  # of each domain that the last evaluation reads


class Size:
    """What differs between the demonstration and its quick form."""

    def __init__(self, vocab_size, heldout, kill_at, overrides, prompt):
        self.vocab_size = vocab_size
        self.heldout = heldout  # share of the documents
        self.kill_at = kill_at  # first step whose checkpoint may be cut short
        self.overrides = overrides
        self.prompt = prompt


FULL = Size(8192, 0.02, 150, ["eval.max_documents=16"], "In the beginning")
QUICK = Size(
    1024,
    0.04,
    150,
    """train.steps=300 model.d_model=128 model.n_heads=2 model.n_kv_heads=2 model.d_ff=384
    model.vocab_size=1024 model.context_length=256 model.sliding_window=64 data.sequence_length=256 batch.microbatch=4
    optim.lr=1e-2 schedule.warmup_steps=20 eval.interval=0""".split(),
    "In the beginning",
)


class Demo:
    def __init__(self, binary, directory, size):
        self.binary = binary
        self.directory = directory
        self.size = size
        self.tokenizer = directory / "tokenizer.json"
        self.tokens = directory / "tokens"
        self.run = directory / "run"
        self.exported = directory / "hf"
        self.failures = []
        self.seconds = {}

    def lockstep(self, *arguments):
        return [str(self.binary), *(str(argument) for argument in arguments)]

    def call(self, *arguments):
        subprocess.run(self.lockstep(*arguments), check=True, stdin=subprocess.DEVNULL)

    def json(self, *arguments):
        done = subprocess.run(
            self.lockstep(*arguments, "--json"), check=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return json.loads(done.stdout)

    def expect(self, condition, what):
        if not condition:
            self.failures.append(what)

    def step(self, title, done):
        """Prints a heading; what is done already is not done again."""
        print(f"\n== {title}" + (" (from an earlier run)" if done else ""), flush=True)
        return not done

    def split(self):
        return ["--heldout", self.size.heldout, "--heldout-seed", SEED]

    def make_tokens(self, texts):
        if self.step("tokenizer, on the training part", self.tokenizer.exists()):
            self.call("tokenizer", "train", "--vocab-size", self.size.vocab_size, *self.split(),
                      "-o", self.tokenizer, *texts.values())  # fmt: skip
        if self.step("token files and mix", (self.tokens / "dataset.json").exists()):
            shutil.rmtree(self.tokens, ignore_errors=True)
            labels = [f"{domain}={path}" for domain, path in texts.items()]
            self.call("tokenize", "--tokenizer", self.tokenizer, "--dtype", "uint16",
                      *self.split(), "-o", self.tokens, *labels)  # fmt: skip
        shared, held_out = self.shared_documents()
        print(f"held-out documents that are in the training part too: {shared} of {held_out}")
        self.expect(shared == 0, f"{shared} held-out documents are in the training part")

    def shared_documents(self):
        """Compares every held-out document with every training document."""
        documents = {"train": set(), "heldout": set()}
        counts = {"train": 0, "heldout": 0}
        for path in self.tokens.glob("*/*.npy"):
            part = path.name.split("-")[0]
            tokens = array.array("H", path.read_bytes()).tobytes()
            with gzip.open(path.with_suffix(".csv.gz"), "rt") as file:
                for row in csv.reader(file):
                    documents[part].add(tokens[2 * int(row[0]) : 2 * int(row[1])])
                    counts[part] += 1
        return len(documents["train"] & documents["heldout"]), counts["heldout"]

    def train_command(self):
        return self.lockstep(
            "train", RECIPE, f"run.dir={self.run}", f"data.mix={self.tokens}/mix.txt",
            f"data.base_dir={self.tokens}", f"data.tokenizer_file={self.tokenizer}",
            f"eval.mix={self.tokens}/heldout.txt", *self.size.overrides,
        )  # fmt: skip

    def train(self):
        killed = self.directory / "killed.json"
        finished = self.events("finish")
        if not self.step("training", finished):
            return
        begin = time.monotonic()
        if not killed.exists():
            shutil.rmtree(self.run, ignore_errors=True)
            print(f"to be killed inside the checkpoint of step {self.size.kill_at} or later")
            unfinished = None
            for _ in range(5):  # again when the write was over before the signal came
                unfinished = unfinished or run_and_kill(
                    self.train_command(), self.run / "checkpoints", self.size.kill_at
                )
            self.expect(unfinished, "the run was not killed inside a checkpoint write")
            killed.write_text(json.dumps({"unfinished": unfinished}))
            print(f"\nkilled (SIGKILL) while it wrote {unfinished}; the same command goes on:")
        subprocess.run(self.train_command(), check=True, stdin=subprocess.DEVNULL)
        self.seconds["training"] = time.monotonic() - begin

    def events(self, name):
        path = self.run / "events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def replay(self):
        """What was trained again after the kill, compared here once more from the files."""
        old = [
            line
            for path in sorted(self.run.glob("metrics.superseded-*.jsonl"))
            for line in self.metrics(path).values()
        ]
        new = self.metrics(self.run / "metrics.jsonl")
        self.expect(old, "no step was trained again")
        bits = ("loss_bits", "grad_norm_bits", "batch_digest")
        different = [
            line["step"] for line in old
            if any(line[key] != new[line["step"]][key] for key in bits)
        ]  # fmt: skip
        self.expect(not different, f"steps {different} differ from what was logged")
        steps = [line["step"] for line in old]
        largest = max((abs(line["loss"] - new[line["step"]]["loss"]) for line in old), default=0.0)
        return {"first": min(steps, default=0), "last": max(steps, default=0), "steps": len(old),
                "different": len(different), "largest": largest}  # fmt: skip

    @staticmethod
    def metrics(path):
        if not path.exists():
            return {}
        lines = path.read_text().splitlines(keepends=True)
        return {
            line["step"]: line for line in (json.loads(x) for x in lines if x.endswith("\n"))
        }

    def evaluate(self):
        self.step("held-out loss by domain", False)
        stats = self.json("data", "stats", self.tokens / "mix.txt", "--base-dir", self.tokens,
                          "--dtype", "uint16", "--tokenizer", self.tokenizer)  # fmt: skip
        entropy = {s["label"]: s["unigram_entropy_nats"] for s in stats["labels"]}
        report = self.json("eval", "--heldout", "--model", self.run, "--mix",
                           self.tokens / "heldout.txt", "--base-dir", self.tokens, "--token-type",
                           "uint16", "--tokenizer", self.tokenizer, "--max-documents",
                           MOST_DOCUMENTS)  # fmt: skip
        print(f"{'domain':16} {'documents':>9} {'tokens':>8} {'loss':>8} {'unigram':>8} "
              f"{'margin':>8} {'bits/byte':>9}")  # fmt: skip
        for domain in report["domains"]:
            label = domain["label"]
            margin = entropy[label] - domain["loss"]
            print(f"{label:16} {domain['documents']:9} {domain['targets']:8} "
                  f"{domain['loss']:8.4f} {entropy[label]:8.4f} {margin:8.4f} "
                  f"{domain['bits_per_byte']:9.4f}")  # fmt: skip
            self.expect(margin > 0, f"{label}: held-out loss is above the unigram entropy")
        return report

    def export(self):
        if self.step("export to Hugging Face's format", (self.exported / "config.json").exists()):
            self.call("export-hf", self.run, "-o", self.exported, "--tokenizer", self.tokenizer)
        self.step("a continuation, by the exported model", False)
        self.call("generate", "--model", self.exported, "--tokenizer", self.tokenizer, "--prompt",
                  self.size.prompt, "--max-tokens", "60", "--temperature", "0.7", "--top-p", "0.9",
                  "--seed", "0")  # fmt: skip

    def summary(self, texts, report):
        replay = self.replay()
        dataset = json.loads((self.tokens / "dataset.json").read_text())
        trained = self.metrics(self.run / "metrics.jsonl")
        last = trained[max(trained)]
        speed = sorted(line["tokens_per_s"] for line in trained.values())[len(trained) // 2]
        mfu = sorted(line["mfu"] for line in trained.values())[len(trained) // 2]
        rows = [
            ("text", f"{len(texts)} domains, {count(dataset, 'train', 'documents')} documents to "
             f"train on, {count(dataset, 'heldout', 'documents')} held out",
             next(iter(texts.values())).parent),
            ("tokenizer", f"byte-level BPE, {self.size.vocab_size} ids", self.tokenizer),
            ("token files", f"{count(dataset, 'train', 'tokens')} tokens to train on, "
             f"{count(dataset, 'heldout', 'tokens')} held out", self.tokens),
            ("training", f"{last['step']} steps, {last['tokens']} tokens, loss "
             f"{trained[min(trained)]['loss']:.3f} to {last['loss']:.3f}", self.run),
            ("speed", f"{speed:.0f} tokens/s, MFU {100 * mfu:.1f}% (medians)",
             self.run / "metrics.jsonl"),
            ("killed", "SIGKILL inside the write of "
             + str(json.loads((self.directory / "killed.json").read_text())["unfinished"]),
             self.run / "events.jsonl"),
            ("trained again", f"steps {replay['first']} to {replay['last']}: "
             f"{replay['steps'] - replay['different']} of {replay['steps']} equal what the killed "
             f"process had logged (difference {replay['largest']:.3f}, compared on bits)",
             self.run / "metrics.superseded-1.jsonl"),
            ("held out", f"loss {report['total']['loss']:.4f}, "
             f"{report['total']['bits_per_byte']:.4f} bits a byte", self.tokens / "heldout.txt"),
            ("exported", "Hugging Face format", self.exported),
        ]  # fmt: skip
        print("\n== what was done, and where the files are")
        for name, what, where in rows:
            print(f"{name:14} {what}\n{'':14}   {shown(where)}")
        for failure in self.failures:
            print(f"FAILED: {failure}")
        return 1 if self.failures else 0


def count(dataset, part, key):
    return f"{sum(label[part][key] for label in dataset['labels']):,}"


def shown(path):
    path = Path(path).resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fresh", action="store_true", help="use nothing of an earlier run")
    parser.add_argument("--work", type=Path, default=ROOT / "work")
    options = parser.parse_args()
    begin = time.monotonic()
    print("== text", flush=True)
    texts, name = None, "demo-quick" if options.quick else "demo"
    if not options.quick:
        texts = text.from_packages(options.work / "text")
        if texts is None:
            print("going on with the text in assets/corpus")
            name = "demo-bundled"
    texts = texts or text.bundled()
    for domain, path in texts.items():
        print(f"  {domain:16} {shown(path)}, {path.stat().st_size / 1e6:.1f} MB")
    demo = Demo(options.binary.resolve(), options.work / name, QUICK if options.quick else FULL)
    if options.fresh:
        shutil.rmtree(demo.directory, ignore_errors=True)
    demo.directory.mkdir(parents=True, exist_ok=True)
    try:
        demo.make_tokens(texts)
        demo.train()
        report = demo.evaluate()
        demo.export()
        code = demo.summary(texts, report)
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(map(str, error.cmd[:3]))} ... ended with {error.returncode}; "
              f"rm -r {shown(demo.directory)} starts afresh", file=sys.stderr)  # fmt: skip
        sys.exit(error.returncode if 0 < error.returncode < 126 else 1)
    except KeyboardInterrupt:
        print("\nstopped; run the same command to go on", file=sys.stderr)
        sys.exit(75)
    print(f"\ndone in {time.monotonic() - begin:.0f} s")
    sys.exit(code)


if __name__ == "__main__":
    main()
