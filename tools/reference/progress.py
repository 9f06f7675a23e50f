"""A line on the terminal that says what is done, how much of it, and how long it will take."""

import sys
import time


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def show(text):
    print(f"\r  {text:76}", end="", file=sys.stderr, flush=True)


class Progress:
    def __init__(self, what):
        self.what, self.begin, self.shown = what, time.monotonic(), 0.0
        show(what)

    def __call__(self, share):
        """`share` of the work is done, 0 to 1."""
        now = time.monotonic()
        if now - self.shown < 0.5 and share < 1:
            return
        self.shown = now
        left = (now - self.begin) * (1 - share) / max(share, 1e-9)
        show(f"{self.what}: {100 * share:.0f}%, {clock(left)} left")
