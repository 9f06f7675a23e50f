"""Errors made on purpose in the reference: each must be told apart from a faithful port."""

import json

from model import BREAKS

PASSES = 8  # over the small corpus of the repeated-data error
# A faithful port's logits are within this of the reference's; a broken one's are not.
PARITY = 1e-3
HELD_OUT = ("c4_loss", "perplexity", "token_kl", "tasks")


class Breaks:
    def __init__(self, reproduction, verdict):
        self.r, self.verdict = reproduction, verdict
        self.faithful = reproduction.directory("reference", "fp32", 1)
        self.rows = []

    def run(self):
        self.parity(None)
        for broken in BREAKS:
            self.parity(broken)
            self.train(broken)
        self.train("repeat-data")
        print("\n== errors made on purpose, each against the faithful reference (stage 1)")
        for row in self.rows:
            print(row)

    def parity(self, broken):
        """Logits with the reference's own weights, as the broken port computes them."""
        name = broken or "faithful"
        r, step = self.r, self.r.size.stage1_steps
        path = r.out / f"golden/{name}.safetensors"
        path.parent.mkdir(exist_ok=True)
        weights = self.faithful / f"checkpoints/step-{step:08d}"
        if r.step(f"{name}: logits with the reference's weights", path.exists()):
            r.python(
                "write_golden.py", weights, "-o", path, "--mix", r.tokens / "heldout.txt",
                "--base-dir", r.tokens, "--token-type", "uint16", "--length",
                r.size.sequence_length, "--windows", r.size.windows,
                *(["--break", broken] if broken else []),
            )  # fmt: skip
        found = r.lockstep("parity", "--model", weights, "--golden", path, "--json")
        distance = found["logit_max_abs"]
        self.rows.append(f"{name:12} parity: largest logit distance {distance:.2e}, mean KL "
                         f"{found['kl_mean']:.2e}, max {found['kl_max']:.2e}, same top token "
                         f"{100 * found['top1']:.2f}%")  # fmt: skip
        passed = distance <= PARITY
        self.verdict.expect(passed == (broken is None),
                            f"{name}: parity {'passed' if passed else 'failed'}, logits differ by "
                            f"{distance:.2e} at most")  # fmt: skip

    def train(self, broken):
        r, size = self.r, self.r.size
        repeated = size.stage1_steps * size.batch // PASSES
        extra = ["--break", broken]
        extra += ["--repeated", repeated] if broken == "repeat-data" else []
        bundle = r.train_reference(f"break-{broken}", "fp32", 1, 0, extra)
        r.evaluate_reference(bundle, 1, self.faithful)
        r.step(f"comparison of {bundle.name} with the reference", False)
        found = self.verdict.compare(bundle, self.faithful, r.directory("reference", "bf16", 1))
        last = [s for s in found["surfaces"] if s["step"] == size.stage1_steps]
        differing = [s["surface"] for s in last if s["verdict"] == "differs"]
        self.rows.append(f"{broken:12} differs on {', '.join(differing) or 'nothing'}")
        if r.options.quick:
            return
        self.verdict.expect(any(s.split("/")[0] in HELD_OUT for s in differing),
                            f"{broken}: no held-out surface differs")  # fmt: skip
        if broken == "repeat-data":
            self.judge_repeats(bundle, found)

    def judge_repeats(self, bundle, found):
        """Training loss falls by heart, held-out loss does not follow."""
        tail = self.r.size.stage1_steps * 7 // 8  # the last pass over the small corpus
        ours, faithful = (_mean_loss(d / "metrics.jsonl", tail) for d in (bundle, self.faithful))
        held_out = [s["statistic"] for s in found["surfaces"] if s["surface"] == "perplexity"][-1]
        self.rows.append(f"{'repeat-data':12} training loss of the last pass {ours:.4f}, the "
                         f"reference's {faithful:.4f}; held-out loss {held_out:+.4f}")  # fmt: skip
        self.verdict.expect(ours < faithful, "repeat-data: training loss is not lower")
        self.verdict.expect(held_out > -1e-3, "repeat-data: held-out loss is better")


def _mean_loss(path, after):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["step"] > after]
    return sum(losses) / len(losses)
