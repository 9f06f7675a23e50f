"""Token-level KL divergence of a model from a reference on held-out documents, at every position
of a document that has a target."""

import numpy as np
import torch

from heldout import groups

BUCKETS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)  # where buckets of positions end


def _positions(reference, model, rows, tokens):
    """Per document: KL, equal arg-max, overlap of the top five, at each position."""
    theirs, ours = reference.hidden(tokens), model.hidden(tokens)
    columns = model.columns
    for r, document in enumerate(rows):
        count = len(document.tokens) - 1
        p = reference.head(theirs[r, :count])[:, :columns].double().log_softmax(-1)
        q = model.head(ours[r, :count])[:, :columns].double().log_softmax(-1)
        kl = (p.exp() * (p - q)).sum(-1)
        top_p, top_q = p.topk(5, -1).indices, q.topk(5, -1).indices
        shared = (top_p[:, :, None] == top_q[:, None, :]).any(-1).double().mean(-1)
        yield document, kl.numpy(), (top_p[:, 0] == top_q[:, 0]).double().numpy(), shared.numpy()


def evaluate(reference, model, documents, name, progress):
    """KL(reference || model): the surface of an evaluation file."""
    found, done = {}, 0
    for rows, tokens in groups(documents):
        for document, *values in _positions(reference, model, rows, tokens):
            found[document.index] = values
        done += len(rows)
        progress(done / len(documents))
    order = sorted(found)
    kl, top1, top5 = (np.concatenate([found[i][part] for i in order]) for part in range(3))
    place = np.concatenate([np.arange(len(found[i][0])) for i in order])
    percentiles = np.percentile(kl, [50, 90, 99, 99.9])
    buckets, first = [], 0
    for end in BUCKETS:
        inside = kl[(place >= first) & (place < end)]
        if len(inside):
            buckets.append({"first": first, "last": end - 1, "tokens": len(inside),
                            "mean": float(inside.mean())})  # fmt: skip
        first = end
    return {
        "reference": name, "vocab": model.columns, "tokens": len(kl),
        "mean": float(kl.mean()), "max": float(kl.max()),
        "percentiles": dict(zip(("50", "90", "99", "99.9"), map(float, percentiles))),
        "top1": float(top1.mean()), "top5": float(top5.mean()), "buckets": buckets,
        "by_document": [{"document": i, "tokens": len(found[i][0]), "kl": float(found[i][0].sum())}
                        for i in order],
    }  # fmt: skip
