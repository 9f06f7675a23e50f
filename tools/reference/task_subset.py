"""A smaller copy of the tasks' data sets: both sides of a comparison answer the same questions."""

import json
import os
from pathlib import Path

from score_tasks import TASKS, data_file, read_rows


def spread(rows, count):
    """`count` rows (all when there are fewer): as many of each subject as can be, in turn over the
    subjects; each subject's rows stay in their order."""
    subjects = {}
    for row in rows:
        subjects.setdefault(row.get("subject", ""), []).append(row)
    taken = {name: 0 for name in subjects}
    count = min(count, len(rows))
    while sum(taken.values()) < count:
        for name in subjects:
            if taken[name] < len(subjects[name]) and sum(taken.values()) < count:
                taken[name] += 1
    return [row for name, rows in subjects.items() for row in rows[: taken[name]]]


def make(source, target, count):
    """Writes TARGET/NAME.jsonl with `count` rows of every task's data set."""
    Path(target).mkdir(parents=True, exist_ok=True)
    for name, _ in TASKS.values():
        path = Path(target) / f"{name}.jsonl"
        if path.exists():
            continue
        rows = spread(read_rows(data_file(source, name)), count)
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.replace(unfinished, path)
