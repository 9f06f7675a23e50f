"""The reproduction's data: the demonstration's text, tokenizer and token files, a second mix, and
a part of the tasks' data sets."""

import sys
from pathlib import Path

import task_subset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))
import demo
import text

# What stage 2 is trained on, of the domains that there are.
SECOND_MIX = ("mathematics", "database-docs", "database-pages", "dictionary", "timekeeping")


def prepare(reproduction):
    size, out = reproduction.size, reproduction.out
    tokens = out / "data/tokens"
    texts = None
    if not (tokens / "dataset.json").exists():
        if not size.bundled:
            texts = text.from_packages(text.ROOT / "work/text")
            if texts is None:
                print("going on with the text in assets/corpus")
        texts = texts or text.bundled()
        shape = demo.Size(size.vocab_size, size.heldout, 0, [], "")
        (out / "data").mkdir(parents=True, exist_ok=True)
        demo.Demo(reproduction.binary, out / "data", shape).make_tokens(texts)
    else:
        reproduction.step("text, tokenizer and token files", True)
    lines = (tokens / "mix.txt").read_text().splitlines()
    second = [line for line in lines if line.split(",")[0] in SECOND_MIX]
    (out / "data/stage2.mix").write_text("".join(line + "\n" for line in second))
    prepare_tasks(reproduction)


def prepare_tasks(reproduction):
    source, size = reproduction.options.data, reproduction.size
    if source is None:
        print("\nno data sets for the tasks: no --data DIR was given, and there is no "
              "../shared/data/eval. Tasks are left out: their verdict is `not enough data`.")
        return
    reproduction.tasks = reproduction.out / "data/tasks"
    task_subset.make(source.resolve(), reproduction.tasks, size.questions)
    print(f"\ntasks: up to {size.questions} questions of each, from {source.resolve()}")
