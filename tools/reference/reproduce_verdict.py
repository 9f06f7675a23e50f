"""What the comparisons found, and whether everything promised holds."""

import json

# Largest difference of the training losses over the first steps, in nats.
FIRST_STEPS, FIRST_DIFFERENCE = 50, 1e-4


class Verdict:
    def __init__(self, reproduction):
        self.reproduction = reproduction
        self.failures = []
        self.comparisons = {}

    def expect(self, condition, what):
        if not condition:
            self.failures.append(what)

    def compare(self, a, b, floor, context=None):
        """`lockstep compare`, which prints its table, kept as JSON beside the runs."""
        r = self.reproduction
        arguments = [
            "compare", a, b, "--floor", floor, *(["--context", context] if context else []),
            "--mix", r.tokens / "heldout.txt", "--base-dir", r.tokens, "--token-type", "uint16",
            "--sequence-length", r.size.sequence_length, "--kl-tokens", r.size.kl_tokens, "--c4",
            r.size.c4,
        ]  # fmt: skip
        found = r.lockstep(*arguments, "--json", accept=(0, 10, 11))
        path = r.out / f"compare-{a.name}.json"
        path.write_text(json.dumps(found, indent=1) + "\n")
        self.comparisons[a.name] = found
        return found

    def compare_all(self):
        r = self.reproduction
        for precision, other in (("fp32", "bf16"), ("bf16", "fp32")):
            for stage in (1, 2):
                ours = r.directory("ours", precision, stage)
                r.step(f"comparison of {ours.name} with the reference", False)
                context = r.directory("reference-seed2", "fp32", stage)
                found = self.compare(
                    ours, r.directory("reference", precision, stage),
                    r.directory("reference", other, stage), context,
                )  # fmt: skip
                self.judge(ours.name, found, precision, stage)

    def judge(self, name, found, precision, stage):
        if precision == "fp32" and stage == 1:
            first = found["training_loss"]["first_50_max_abs"]
            self.expect(
                first < FIRST_DIFFERENCE, f"{name}: training losses differ by {first:.2e} in the "
                f"first {FIRST_STEPS} steps, wanted under {FIRST_DIFFERENCE}",
            )  # fmt: skip
        if self.reproduction.options.quick:
            return  # too few documents for a verdict
        self.expect(found["verdict"] == "reproduced" or not self.reproduction.tasks,
                    f"{name}: {found['verdict']}")  # fmt: skip
        if precision == "fp32":
            kl, floor = last_kl(found), last_kl(found["floor"])
            self.expect(kl <= floor, f"{name}: token KL {kl:.3e} is above the floor {floor:.3e}")

    def finish(self):
        r = self.reproduction
        verdicts = {name: found["verdict"] for name, found in self.comparisons.items()}
        summary = {"failures": self.failures, "seconds": r.seconds, "verdicts": verdicts}
        (r.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
        for failure in self.failures:
            print(f"FAILED: {failure}")
        return 1 if self.failures else 0


def last_kl(found):
    """Of the last step that is compared."""
    values = [s["statistic"] for s in found["surfaces"] if s["surface"] == "token_kl"]
    return values[-1] if values else None
