"""The two sizes of the reproduction: the whole one and `--quick`, which shows that the script
works."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    vocab_size: int
    heldout: float  # share of the documents
    documents: int  # held-out ones of each domain that are evaluated
    questions: int  # of each task
    windows: int  # held-out windows for parity
    shape: tuple  # overrides of both stages' recipes
    stage1: tuple
    stage2: tuple
    stage1_steps: int
    stage2_steps: int
    middle: int  # step of stage 1 that is compared too
    batch: int
    sequence_length: int
    bundled: bool  # text of the repository only
    kl_tokens: int
    c4: str  # the held-out domain that counts as C4: one that both corpora have

    def steps(self, stage):
        return self.stage1_steps if stage == 1 else self.stage2_steps

    def checkpoints(self, stage):
        return [self.middle, self.stage1_steps] if stage == 1 else [self.stage2_steps]

    def overrides(self, stage):
        return [*self.shape, *(self.stage1 if stage == 1 else self.stage2)]


FULL = Size(
    vocab_size=8192, heldout=0.02, documents=100, questions=200, windows=4,
    shape=(), stage1=(), stage2=(), stage1_steps=200, stage2_steps=60, middle=100, batch=4,
    sequence_length=512, bundled=False, kl_tokens=32768, c4="mathematics",
)  # fmt: skip

QUICK = Size(
    vocab_size=1024, heldout=0.04, documents=12, questions=6, windows=2,
    shape=(
        "model.vocab_size=1024", "model.d_model=64", "model.n_heads=2", "model.n_kv_heads=2",
        "model.head_dim=32", "model.d_ff=192", "model.context_length=128",
        "model.sliding_window=32", "data.sequence_length=128", "batch.instances=4",
        "batch.microbatch=4",
    ),
    stage1=("train.steps=16", "schedule.warmup_steps=4", "checkpoint.also_at=[8]"),
    stage2=("train.steps=8",), stage1_steps=16, stage2_steps=8, middle=8, batch=4,
    sequence_length=128, bundled=True, kl_tokens=4096, c4="mathematics",
)  # fmt: skip
