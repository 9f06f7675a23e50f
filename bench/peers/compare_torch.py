#!/usr/bin/env python3
"""Lockstep and PyTorch on the same training step, in turn: tokens a second and their ratio.

bench/peers/compare_torch.py 190m | 10m [--allocator tuned|huge|default] [--precision bf16|fp32|both]

PyTorch runs as `plain` (written as usual), to which the ratio is promised, and as `tuned` (what can be
done by hand: torch_tuned.py), to which it is printed beside.
Packages: tools/install_packages.sh python3-torch libopenblas0-openmp"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rounds
from shapes import SHAPES

# Promised ratios to `plain`; to `tuned` that Lockstep is the faster.
LEAST = {("190m", "tuned"): 1.35, ("190m", "default"): 1.7,
         ("10m", "tuned"): 1.7, ("10m", "default"): 1.9}  # fmt: skip
# glibc gives large arrays back to the kernel at once and faults them in again; tuned, it keeps them.
# Autograd's thread then needs the main arena too for huge pages to stay: other arenas shrink.
TUNED = {"mmap_max": 0, "trim_threshold": 100_000_000_000, "top_pad": 268_435_456}
ALLOCATORS = {"tuned": TUNED, "huge": {**TUNED, "arena_max": 1, "hugetlb": 1}, "default": {}}
# Debian's PyTorch takes whichever BLAS is installed; this is its fastest. Its kernels are named, for
# on processors younger than itself it takes its oldest.
OPENBLAS_CORES = {"avx512vl": "SkylakeX", "avx2": "Haswell"}
OPENBLAS = Path("/usr/lib/x86_64-linux-gnu/openblas-openmp")


def environment(options):
    values = {"OMP_NUM_THREADS": str(options.threads), "LD_LIBRARY_PATH": str(OPENBLAS)}
    flags = Path("/proc/cpuinfo").read_text()
    known = [core for flag, core in OPENBLAS_CORES.items() if flag in flags]
    if known:
        values["OPENBLAS_CORETYPE"] = known[0]
    values["GLIBC_TUNABLES"] = ":".join(
        f"glibc.malloc.{name}={value}" for name, value in ALLOCATORS[options.allocator].items()
    )
    return values


def main():
    parser = rounds.options(__doc__, 5)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--allocator", choices=ALLOCATORS, default="tuned",
                        help="PyTorch's: glibc made to keep memory, also in huge pages, or as it "
                        "is")  # fmt: skip
    parser.add_argument("--precision", choices=("bf16", "fp32", "both"), default="bf16",
                        help="both: Lockstep in bf16, PyTorch in the faster of the two")  # fmt: skip
    parser.add_argument("--peer", choices=("plain", "tuned", "both"), default="both")
    parser.add_argument("--steps", type=int, default=3, help="timed in a round (3)")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has PyTorch")
    options = parser.parse_args()
    shape = SHAPES[options.shape]
    if not (OPENBLAS / "libblas.so.3").exists():
        raise rounds.Unmeasurable(
            f"{OPENBLAS}: not there; without it PyTorch in fp32 uses a reference BLAS. "
            "tools/install_packages.sh python3-torch libopenblas0-openmp"
        )

    def ours():
        precision = "fp32" if options.precision == "fp32" else "bf16"
        found = rounds.lockstep(
            options.binary, "bench", "step", HERE.parent / f"recipes/{shape.recipe}.toml",
            *shape.overrides(), f"train.precision={precision}", f"cpu.threads={options.threads}",
            "--steps", options.steps,
        )  # fmt: skip
        return {"value": found["tokens_per_s"], "note": f"MFU {found['mfu_window_exact']:.1%}"}

    def theirs(model, precision):
        found = json.loads(rounds.call(
            [options.python, HERE / "torch_step.py", options.shape, "--model", model,
             "--precision", precision, "--threads", options.threads, "--steps", options.steps],
            environment(options),
        ))  # fmt: skip
        parts = "  ".join(f"{part} {found[part + '_seconds']:.2f}"
                          for part in ("forward", "backward", "optimiser"))  # fmt: skip
        return {"value": found["tokens_per_s"], "note": f"s: {parts}"}

    sides = {"lockstep": ours}
    for model in ("plain", "tuned") if options.peer == "both" else (options.peer,):
        for precision in ("bf16", "fp32") if options.precision == "both" else (options.precision,):
            sides[f"torch {model} {precision}"] = lambda m=model, p=precision: theirs(m, p)
    found = rounds.interleave(options.rounds, sides, "tokens/s")
    speed = {name: rounds.median(results) for name, results in found.items()}
    for name in list(sides)[1:]:
        print(f"{options.shape}, {options.allocator} allocator: lockstep to {name} "
              f"{speed['lockstep'] / speed[name]:.4g}")  # fmt: skip
    held_to = "tuned" if options.peer == "tuned" else "plain"
    best = max((name for name in sides if held_to in name), key=speed.get)
    least = 1.0
    if held_to == "plain" and options.precision != "fp32" and options.shape != "small":
        least = LEAST[options.shape, "default" if options.allocator == "default" else "tuned"]
    return rounds.verdict(f"ratio to {best}", speed["lockstep"] / speed[best], at_least=least)


if __name__ == "__main__":
    rounds.run(main)
