#!/usr/bin/env python3
"""Lockstep against the shipped run of the reference implementation (tests/golden/reference): the
same recipes, from the same initial weights. Needs no PyTorch.

reference_curve_test.py LOCKSTEP"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent / "golden/reference"
BINARY = ""
LOSS = 1e-4  # nats


def metrics(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Stages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.directory = Path(cls.scratch.name)
        cls.train("stage1")
        cls.train("stage2", f"init.from={cls.directory}/stage1")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def lockstep(cls, *arguments):
        done = subprocess.run([BINARY, *map(str, arguments)], cwd=GOLDEN, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL)  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(f"{arguments[0]} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    @classmethod
    def train(cls, stage, *overrides):
        cls.lockstep("train", f"{stage}.toml", f"run.dir={cls.directory}/{stage}", *overrides)

    def expect_same_curve(self, stage, steps):
        ours = metrics(self.directory / stage / "metrics.jsonl")
        theirs = metrics(GOLDEN / stage / "metrics.jsonl")
        self.assertEqual([line["step"] for line in ours], list(range(1, steps + 1)))
        self.assertEqual(len(theirs), steps)
        for mine, other in zip(ours, theirs):
            with self.subTest(stage=stage, step=mine["step"]):
                for key in ("loss", "ce_loss", "z_loss"):
                    self.assertAlmostEqual(mine[key], other[key], delta=LOSS)
                self.assertAlmostEqual(mine["grad_norm"], other["grad_norm"],
                                       delta=1e-4 * other["grad_norm"])  # fmt: skip
                self.assertAlmostEqual(mine["lr"], other["lr"], delta=1e-12)
                self.assertEqual((mine["tokens"], mine["skipped"]),
                                 (other["tokens"], other["skipped"]))  # fmt: skip

    def expect_same_heldout(self, stage, step):
        found = json.loads(self.lockstep(
            "eval", "--heldout", "--model", self.directory / stage, "--mix", "heldout.mix",
            "--token-type", "uint16", "--sequence-length", 64, "--by-document", "--json",
        ))  # fmt: skip
        golden = json.loads((GOLDEN / stage / f"evals/step-{step:08d}.json").read_text())
        theirs = golden["heldout"]["by_document"]
        self.assertEqual(len(found["by_document"]), len(theirs))
        self.assertGreater(len(theirs), 10)
        for mine, other in zip(found["by_document"], theirs):
            with self.subTest(stage=stage, document=mine["document"]):
                for key in ("label", "document", "targets"):
                    self.assertEqual(mine[key], other[key])
                self.assertAlmostEqual(mine["ce"], other["ce"], delta=LOSS * other["targets"])
        for mine, other in zip(found["domains"], golden["heldout"]["domains"]):
            for key in ("loss", "loss_olmo_core"):
                self.assertAlmostEqual(mine[key], other[key], delta=LOSS)

    def test_stage_1_follows_the_reference(self):
        self.expect_same_curve("stage1", 24)

    def test_stage_2_goes_on_as_the_reference_does(self):
        self.expect_same_curve("stage2", 12)

    def test_an_instance_was_masked_out_of_the_loss(self):
        lines = metrics(self.directory / "stage1/metrics.jsonl")
        self.assertTrue(any(line["filtered"] > 0 for line in lines))

    def test_held_out_losses_are_the_reference_s(self):
        self.expect_same_heldout("stage1", 24)
        self.expect_same_heldout("stage2", 12)


if __name__ == "__main__":
    BINARY = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
