#!/usr/bin/python3
"""Reproduces a run of an independent implementation: trains both, evaluates both, compares."""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import reproduce_sizes
from reproduce_breaks import Breaks
from reproduce_data import prepare
from reproduce_verdict import Verdict

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECIPES = ROOT / "recipes/reproduce"
SECOND_SEED = 1
# PyTorch's tensors stay in the process instead of going back to the system after each operation;
# threads that wait do not burn a shared processor.
ENVIRONMENT = {
    "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_TOP_PAD_": "268435456", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip


def blas_kernels():
    """Debian's OpenBLAS takes its slowest kernels on processors younger than itself, a third as fast:
    the set is named here by what the processor can do."""
    flags = Path("/proc/cpuinfo").read_text()
    for flag, name in (("avx512vl", "SkylakeX"), ("avx2", "Haswell")):
        if flag in flags:
            return {"OPENBLAS_CORETYPE": name}
    return {}


class Reproduction:
    def __init__(self, options):
        self.options = options
        self.binary = options.binary.resolve()
        self.out = options.out.resolve()
        self.size = reproduce_sizes.QUICK if options.quick else reproduce_sizes.FULL
        self.tasks = None  # directory of the tasks' data sets
        self.seconds = {}

    # What is run.

    def lockstep(self, *arguments, accept=(0,)):
        """Standard output as JSON when --json is among the arguments."""
        command = [str(self.binary), *map(str, arguments)]
        as_json = "--json" in arguments
        done = subprocess.run(command, stdin=subprocess.DEVNULL, cwd=self.out,
                              stdout=subprocess.PIPE if as_json else None)  # fmt: skip
        if done.returncode not in accept:
            raise subprocess.CalledProcessError(done.returncode, command)
        return json.loads(done.stdout) if as_json else None

    def python(self, script, *arguments):
        command = ["/usr/bin/python3", str(HERE / script), *map(str, arguments)]
        command += ["--threads", str(self.options.threads)]
        variables = ENVIRONMENT | blas_kernels()
        environment = ["env", *(f"{k}={v}" for k, v in variables.items())]
        subprocess.run(environment + command, check=True, stdin=subprocess.DEVNULL, cwd=self.out)

    def step(self, title, done):
        """Prints a heading; what is done already is not done again."""
        print(f"\n== {title}" + (" (from an earlier run)" if done else ""), flush=True)
        return not done

    # Names of things.

    @property
    def tokens(self):
        return self.out / "data/tokens"

    def directory(self, who, precision, stage):
        return self.out / f"{who}-{precision}-stage{stage}"

    def recipe(self, stage):
        return RECIPES / f"stage{stage}.toml"

    def overrides(self, stage, name, precision):
        mix = self.tokens / "mix.txt" if stage == 1 else self.out / "data/stage2.mix"
        return [
            *self.size.overrides(stage), f"run.name={name}", f"train.precision={precision}",
            f"data.mix={mix}", f"data.base_dir={self.tokens}",
            f"data.tokenizer_file={self.out}/data/tokenizer.json",
            f"eval.mix={self.tokens}/heldout.txt",
        ]  # fmt: skip

    # The parts.

    def initial_weights(self, seed):
        target = self.out / f"init-seed{seed}"
        if self.step(f"initial weights, seed {seed}", (target / "config.json").exists()):
            shutil.rmtree(target, ignore_errors=True)
            unfinished = target.with_name(target.name + ".tmp")
            shutil.rmtree(unfinished, ignore_errors=True)
            self.lockstep("init", self.recipe(1), *self.overrides(1, "init", "fp32"),
                          f"init.seed={seed}", "-o", unfinished)  # fmt: skip
            unfinished.rename(target)
        return target

    def train_reference(self, who, precision, stage, seed=0, extra=()):
        bundle = self.directory(who, precision, stage)
        title = f"{who} ({precision}), stage {stage}: {self.size.steps(stage)} steps by PyTorch"
        if self.step(title, (bundle / "bundle.json").exists()):
            begin = time.monotonic()
            start = ["--moments", self.directory(who, precision, 1)] if stage == 2 else []
            self.python(
                "train_torch.py", self.recipe(stage),
                *self.overrides(stage, bundle.name, precision), "-o", bundle, "--init",
                self.out / f"init-seed{seed}", "--precision", precision, "--checkpoints",
                ",".join(map(str, self.size.checkpoints(stage))), *start, *extra,
            )  # fmt: skip
            self.took(bundle.name, begin)
        return bundle

    def evaluate_reference(self, bundle, stage, reference=None):
        wanted = self.size.checkpoints(stage)
        done = all((bundle / f"evals/step-{step:08d}.json").exists() for step in wanted)
        if self.step(f"{bundle.name}: evaluation by PyTorch", done):
            tasks = ["--data", self.tasks] if self.tasks else []
            other = ["--kl", reference] if reference else []
            self.python(
                "evaluate.py", bundle, *wanted, "--mix", self.tokens / "heldout.txt",
                "--base-dir", self.tokens, "--max-documents", self.size.documents, "--windows",
                self.size.windows if not reference else 0, *tasks, *other,
            )  # fmt: skip

    def reference(self, who, precision, seed=0, against=None):
        """Both stages; `against` names the one whose token KL from it is measured."""
        for stage in (1, 2):
            bundle = self.train_reference(who, precision, stage, seed)
            other = self.directory(*against, stage) if against else None
            self.evaluate_reference(bundle, stage, other)

    def train_ours(self, precision, stage):
        run = self.directory("ours", precision, stage)
        events = run / "events.jsonl"
        done = events.exists() and '"finish"' in events.read_text()
        title = f"ours ({precision}), stage {stage}: {self.size.steps(stage)} steps by Lockstep"
        if self.step(title, done):
            begin = time.monotonic()
            start = f"init.from={self.directory('ours', precision, 1)}"
            self.lockstep("train", self.recipe(stage), *self.overrides(stage, run.name, precision),
                          f"run.dir={run}", *([start] if stage == 2 else []))  # fmt: skip
            self.took(run.name, begin)
        return run

    def evaluate_ours(self, run, precision, stage):
        for step in self.size.checkpoints(stage):
            path = run / f"evals/step-{step:08d}.json"
            if not self.step(f"{run.name}: evaluation of step {step} by Lockstep", path.exists()):
                continue
            tasks = ["--data", self.tasks] if self.tasks else []
            self.lockstep(
                "eval", "--surfaces", "--model", run / f"checkpoints/step-{step:08d}", "--mix",
                self.tokens / "heldout.txt", "--base-dir", self.tokens, "--token-type", "uint16",
                "--sequence-length", self.size.sequence_length, "--tokenizer",
                self.out / "data/tokenizer.json", "--max-documents", self.size.documents,
                "--precision", precision, *tasks, "-o", path,
            )  # fmt: skip

    def ours(self, precision):
        for stage in (1, 2):
            run = self.train_ours(precision, stage)
            self.evaluate_ours(run, precision, stage)

    def took(self, name, begin):
        self.seconds[name] = round(time.monotonic() - begin, 1)

    def run(self):
        begin = time.monotonic()
        self.out.mkdir(parents=True, exist_ok=True)
        self.check_settings()
        prepare(self)
        for seed in (0, SECOND_SEED):
            self.initial_weights(seed)
        self.ours("fp32")
        self.reference("reference", "fp32")
        self.reference("reference", "bf16", against=("reference", "fp32"))
        self.reference("reference-seed2", "fp32", SECOND_SEED)
        self.ours("bf16")
        verdict = Verdict(self)
        verdict.compare_all()
        if self.options.breaks:
            Breaks(self, verdict).run()
        print(f"\ndone in {time.monotonic() - begin:.0f} s; everything is under {self.out}")
        return verdict.finish()

    def check_settings(self):
        """An output directory belongs to one size and one state of the data."""
        path = self.out / "settings.json"
        wanted = {"quick": self.options.quick, "size": repr(self.size)}
        if path.exists() and json.loads(path.read_text()) != wanted:
            sys.exit(f"error: {self.out}: was made with other settings; name another directory "
                     "with --out, or remove it")  # fmt: skip
        path.write_text(json.dumps(wanted, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(prog="reproduce", description=__doc__)
    parser.add_argument("--binary", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="where everything is kept (build/reproduce)")
    parser.add_argument("--data", type=Path, help="directory of the tasks' data sets "
                        "(../shared/data/eval where that exists)")  # fmt: skip
    parser.add_argument("--breaks", action="store_true",
                        help="also train with four errors made on purpose")  # fmt: skip
    parser.add_argument("--quick", action="store_true",
                        help="a tiny model and few steps: shows that the script works")  # fmt: skip
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch (2)")
    options = parser.parse_args()
    name = "build/reproduce-quick" if options.quick else "build/reproduce"
    options.out = options.out or ROOT / name
    usual = ROOT / "../shared/data/eval"
    options.data = options.data or (usual if usual.is_dir() else None)
    try:
        code = Reproduction(options).run()
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(map(str, error.cmd[:4]))} ... ended with {error.returncode}; the "
              "same command goes on from here", file=sys.stderr)  # fmt: skip
        code = error.returncode if 0 < error.returncode < 126 else 1
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        code = 75
    sys.exit(code)


if __name__ == "__main__":
    main()
