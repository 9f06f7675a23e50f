"""The eight multiple-choice tasks, zero-shot: prompts, log-probabilities, answers."""

import gzip
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import torch

POSITIONS = 4096  # run at a time


@dataclass
class Question:
    doc: int  # in its subtask
    subtask: str
    contexts: list  # one for all choices, or one each
    choices: list
    gold: int
    continuations: list = field(default_factory=list)


def _one_context(context, choices, gold):
    return [context] * len(choices), choices, gold


def _arc(row):
    choices = row["choices"]
    context = f"Question: {row['question']}\nAnswer:"
    return _one_context(context, choices["text"], choices["label"].index(row["answerKey"]))


def _openbookqa(row):
    choices = row["choices"]
    gold = choices["label"].index(row["answerKey"].lstrip())
    return _one_context(row["question_stem"], choices["text"], gold)


def _piqa(row):
    return _one_context(f"Question: {row['goal']}\nAnswer:", [row["sol1"], row["sol2"]],
                        int(row["label"]))  # fmt: skip


def _boolq(row):
    answer = row["label"] if "label" in row else row["answer"]
    context = f"{row['passage']}\nQuestion: {row['question']}?\nAnswer:"
    return _one_context(context, ["no", "yes"], int(answer))


def _winogrande(row):
    before, after = row["sentence"].split("_", 1)
    contexts = [before + row["option1"], before + row["option2"]]
    return contexts, [after.strip()] * 2, int(row["answer"]) - 1


def _clean(text):
    text = text.strip().replace(" [title]", ". ")
    return re.sub(r"\[.*?\]", "", text).replace("  ", " ")


def _hellaswag(row):
    if "query" in row:  # cleaned already
        return _one_context(row["query"], row["choices"], int(row["gold"]))
    context = f"{row['activity_label']}: {row['ctx_a']} {row['ctx_b'].capitalize()}"
    return _one_context(_clean(context), [_clean(e) for e in row["endings"]], int(row["label"]))


def _mmlu(row):
    subject = row["subject"].replace("_", " ")
    lines = "".join(f"\n{letter}. {text}" for letter, text in zip("ABCD", row["choices"]))
    context = (
        f"The following are multiple choice questions (with answers) about {subject}.\n\n"
        f"{row['question'].strip()}{lines}\nAnswer:"
    )
    return _one_context(context, list("ABCD"), int(row["answer"]))


# Task -> data set and prompt.
TASKS = {
    "mmlu": ("mmlu.test", _mmlu),
    "hellaswag": ("hellaswag.validation", _hellaswag),
    "arc_easy": ("arc_easy.test", _arc),
    "arc_challenge": ("arc_challenge.test", _arc),
    "openbookqa": ("openbookqa.test", _openbookqa),
    "piqa": ("piqa.validation", _piqa),
    "boolq": ("boolq.validation", _boolq),
    "winogrande": ("winogrande.validation", _winogrande),
}


def read_rows(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def data_file(directory, name):
    for ending in (".jsonl", ".jsonl.gz"):
        path = Path(directory) / (name + ending)
        if path.exists():
            return path
    raise FileNotFoundError(f"{directory}: has neither {name}.jsonl nor {name}.jsonl.gz")


def read_questions(task, directory):
    name, prompt = TASKS[task]
    questions, counts = [], {}
    for row in read_rows(data_file(directory, name)):
        subtask = f"mmlu_{row['subject']}" if task == "mmlu" else ""
        doc = counts.get(subtask, 0)
        counts[subtask] = doc + 1
        contexts, choices, gold = prompt(row)
        question = Question(doc, subtask, contexts, choices, gold)
        question.continuations = [" " + choice for choice in choices]
        questions.append(question)
    return questions


def encode(tokenizer, context, continuation, prefix):
    """Both are encoded as one text; what comes after the context's ids is the continuation. White
    space at the context's end belongs to the continuation."""
    kept = context.rstrip()
    whole = tokenizer.encode(context + continuation)
    if not kept:
        return [prefix], whole
    ids = tokenizer.encode(kept)
    return ids, whole[len(ids) :]


def log_probabilities(model, requests, most, progress=lambda share: None):
    """(context, continuation) ids -> summed log-probability of the continuation. An input that
    several requests have in common runs once."""
    inputs = {}
    for number, (context, continuation) in enumerate(requests):
        ids = tuple((context + continuation)[-(most + 1) : -1])
        inputs.setdefault(ids, []).append(number)
    results = [0.0] * len(requests)
    waiting = sorted(inputs, key=len, reverse=True)
    done, positions = 0, sum(map(len, waiting))
    columns = model.columns
    while waiting:
        rows = waiting[: max(1, POSITIONS // len(waiting[0]))]
        waiting = waiting[len(rows) :]
        tokens = torch.zeros(len(rows), len(rows[0]), dtype=torch.int64)
        for r, row in enumerate(rows):
            tokens[r, : len(row)] = torch.tensor(row)
        hidden = model.hidden(tokens)
        for r, row in enumerate(rows):
            longest = max(len(requests[n][1]) for n in inputs[row])
            logits = model.head(hidden[r, len(row) - longest : len(row)])[:, :columns]
            log_softmax = logits.log_softmax(-1)
            for number in inputs[row]:
                targets = torch.tensor(requests[number][1])
                picked = log_softmax[longest - len(targets) :].gather(1, targets[:, None])
                results[number] = picked.double().sum().item()
        done += sum(map(len, rows))
        progress(done / positions)
    return results


def first_largest(values):
    return max(range(len(values)), key=lambda i: values[i])


def answer(question, scores):
    """Which rules pick the right choice: by log-probability, by that over characters, over
    bytes."""
    by = {
        "acc": scores,
        "acc_norm": [s / len(c) for s, c in zip(scores, question.choices)],
        "acc_bytes": [s / len(c.encode()) for s, c in zip(scores, question.choices)],
    }
    right = {rule: int(first_largest(values) == question.gold) for rule, values in by.items()}
    return {"doc": question.doc, "subtask": question.subtask} | right


def mean_and_error(values, subtasks):
    """The mean, and its standard error pooled over the subtasks."""
    groups = {}
    for value, subtask in zip(values, subtasks):
        groups.setdefault(subtask, []).append(value)
    count = len(values)
    squares = sum(
        sum((x - sum(g) / len(g)) ** 2 for x in g) for g in groups.values() if len(g) > 1
    )
    freedom = count - len(groups)
    error = math.sqrt(squares / freedom / count) if freedom > 0 else None
    return sum(values) / count, error


def score(model, tokenizer, task, directory, progress):
    """The task's entry in an evaluation file."""
    questions = read_questions(task, directory)
    requests = []
    for question in questions:
        for context, continuation in zip(question.contexts, question.continuations):
            requests.append(encode(tokenizer, context, continuation, model.shape.eos))
    scores = iter(log_probabilities(model, requests, model.shape.context_length, progress))
    answers = []
    for question in questions:
        answers.append(answer(question, [next(scores) for _ in question.continuations]))
    subtasks = [a["subtask"] for a in answers]
    entry = {"name": task, "n": len(answers)}
    for rule in ("acc", "acc_norm", "acc_bytes"):
        mean, error = mean_and_error([a[rule] for a in answers], subtasks)
        entry[rule] = mean
        if rule == "acc":
            entry["acc_stderr"] = error
    return entry | {"documents": answers}
