"""The shapes that Lockstep and PyTorch are compared on: an optimiser step each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    recipe: str  # in bench/recipes
    layers: int
    width: int
    heads: int
    mlp: int
    vocabulary: int  # rows of embedding and head
    window: int  # of three layers in four
    batch: int
    length: int

    @property
    def tokens(self):
        return self.batch * self.length

    def windows(self):
        """Keys that a query of each layer sees; 0: all before it."""
        return [0 if layer % 4 == 3 else self.window for layer in range(self.layers)]

    def overrides(self):
        """Of the recipe, so that Lockstep's step is the same."""
        return [f"batch.instances={self.batch}", f"batch.microbatch={self.batch}",
                f"data.sequence_length={self.length}"]  # fmt: skip


SHAPES = {
    "190m": Shape("190m", 12, 768, 12, 3072, 100352, 4096, 1, 1024),
    "10m": Shape("10m", 8, 256, 4, 1024, 4096, 128, 8, 512),
    # For trying the commands out.
    "small": Shape("10m", 8, 256, 4, 1024, 4096, 128, 1, 128),
}
