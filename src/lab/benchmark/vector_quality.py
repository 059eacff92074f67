"""What the cosine of the vectors is worth: judging pairs, finding duplicates, making clusters."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score, roc_curve
from transformers import PreTrainedTokenizerBase

from ...data.graph import components, wording
from ...models.encoder import Encoder, load_encoder
from ...report.intervals import mean_gain
from ...search.averaging import average
from ...search.cluster import agreement, cluster, numbers
from ...search.duplicates import Retrieval, labelled_groups, retrieval
from ...search.encode import encode
from ...search.matcher import Matcher
from ...search.threshold import best_threshold
from ...training.member import load_piece

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the tuned weights
Encode = Callable[[list[str]], np.ndarray]


def on_dev(matcher: Matcher) -> dict[str, Any]:
    """The untuned encoder, the tuned one, the mean that search and export use, and the head."""
    member, pretrained = matcher.piece.member, matcher.config.paths.pretrained
    untuned, tokenizer = load_encoder(member.encoder, pretrained)
    untuned.to(matcher.encoder.word_embeddings.weight.device)
    dev = matcher.layout.table("dev")
    head = matcher.score(list(zip(dev["query1"], dev["query2"], strict=True)))
    return {
        "untuned": _cosine_quality(matcher, _with(matcher, untuned, tokenizer)),
        "tuned": _cosine_quality(matcher, _with(matcher, matcher.siamese.encoder, tokenizer)),
        "mean": _cosine_quality(matcher, matcher.encode),
        "head_accuracy": share((head > 0.5) == (dev["label"] == 1)),
        "head_auc": round(float(roc_auc_score(dev["label"], head)), 4),
    }


def out_of_fold(matcher: Matcher) -> dict[str, Any]:
    """How much of the tuned weights the mean should have, on every fold's own rows of train.

    The gain is over the untuned encoder, with its 95 % interval over components of questions.
    """
    member, pretrained = matcher.piece.member, matcher.config.paths.pretrained
    device = matcher.encoder.word_embeddings.weight.device
    train, folds = matcher.layout.table("train"), matcher.layout.fold_numbers()
    found: dict[float, list[Retrieval]] = {tuned: [] for tuned in SHARES}
    areas: dict[float, list[float]] = {tuned: [] for tuned in SHARES}
    asking: list[np.ndarray] = []  # components of the questions that look for a duplicate
    for fold in range(matcher.layout.folds):
        piece = load_piece(matcher.layout.piece(matcher.piece.name, fold), pretrained)[0]
        own = train[folds == fold]
        questions, groups = labelled_groups(own)
        for tuned in SHARES:
            untuned, tokenizer = load_encoder(member.encoder, pretrained)
            mean = average(untuned.to(device), piece.encoder, tuned)
            vectors = _with(matcher, mean, tokenizer)(questions)
            found[tuned].append(retrieval(vectors, groups))
            areas[tuned].append(roc_auc_score(own["label"], pair_cosines(own, questions, vectors)))
        component = _components_of_groups(own, questions, groups)
        # Components are numbered in each fold anew.
        asking.append(component[found[0.0][-1].groups] + 2 * len(train) * fold)
    firsts = {tuned: np.concatenate([r.ranks for r in found[tuned]]) == 1 for tuned in SHARES}
    together = np.concatenate(asking)
    rows = {}
    for tuned, first in firsts.items():
        gain, *interval = mean_gain(first.astype(float) - firsts[0.0], together)
        rows[f"{tuned:g}"] = {
            "recall_at_1": share(first),
            "gain": share(gain),
            "gain_interval": [share(end) for end in interval],
            "auc": share(areas[tuned]),
        }
    return {"queries": len(together), "share of the tuned weights": rows}


def _components_of_groups(
    frame: pd.DataFrame, questions: list[str], groups: np.ndarray
) -> np.ndarray:
    """int64: group → the component of the question graph that it is part of."""
    rows = components(frame, key=wording)
    of_question = {
        **dict(zip(frame["query1"], rows, strict=True)),
        **dict(zip(frame["query2"], rows, strict=True)),
    }
    found = np.full(groups.max() + 1, -1)
    found[groups] = [of_question[question] for question in questions]
    return found


def _with(matcher: Matcher, encoder: Encoder, tokenizer: PreTrainedTokenizerBase) -> Encode:
    member = matcher.piece.member

    def run(questions: list[str]) -> np.ndarray:
        return encode(
            encoder,
            member.pooling,
            tokenizer,
            questions,
            max_length=member.max_length,
            precision=matcher.precision,
        )

    return run


def _cosine_quality(matcher: Matcher, encode: Encode) -> dict:
    """Thresholds are chosen on the chosen fold's own training rows, everything else is dev."""
    own, dev = _own_rows(matcher), matcher.layout.table("dev")
    own_questions, own_groups = labelled_groups(own)
    own_vectors = encode(own_questions)
    cut = pair_threshold(own, own_questions, own_vectors)
    questions, groups = labelled_groups(dev)
    vectors = encode(questions)
    cosines = pair_cosines(dev, questions, vectors)
    group_cut, _ = best_threshold(own_vectors, own_groups)
    found = retrieval(vectors, groups)
    result = agreement(groups, numbers(cluster(vectors, group_cut), len(questions)))
    return {
        "accuracy": share((cosines >= cut) == (dev["label"] == 1)),
        "auc": round(float(roc_auc_score(dev["label"], cosines)), 4),
        "queries": len(found.ranks),
        "among": len(questions),
        "recall_at_1": round(found.recall_at_1, 4),
        "mrr": round(found.mrr, 4),
        "cluster_threshold": round(group_cut, 4),
        "cluster_precision": round(result.precision, 4),
        "cluster_recall": round(result.recall, 4),
        "adjusted_rand": round(result.adjusted_rand, 4),
    }


def out_of_fold_threshold(matcher: Matcher, encode: Encode) -> float:
    """`pair_threshold` on the rows of train that the chosen fold's model was not trained on."""
    own = _own_rows(matcher)
    questions, _ = labelled_groups(own)
    return pair_threshold(own, questions, encode(questions))


def pair_threshold(frame: pd.DataFrame, questions: list[str], vectors: np.ndarray) -> float:
    """The cosine from which on pairs count as the same, with the highest accuracy on `frame`."""
    false, true, cuts = roc_curve(frame["label"], pair_cosines(frame, questions, vectors))
    positive = float(np.mean(frame["label"]))
    return float(cuts[np.argmax(true * positive + (1 - false) * (1 - positive))])


def _own_rows(matcher: Matcher) -> pd.DataFrame:
    folds = matcher.layout.fold_numbers()
    return matcher.layout.table("train")[folds == matcher.piece.fold]


def pair_cosines(frame: pd.DataFrame, questions: list[str], vectors: np.ndarray) -> np.ndarray:
    """Cosine of each pair of a frame, whose questions' vectors of length 1 are given."""
    row = {question: number for number, question in enumerate(questions)}
    left, right = (vectors[[row[q] for q in frame[name]]] for name in ("query1", "query2"))
    return np.einsum("ij,ij->i", left, right)


def share(values: Any) -> float:
    """The mean, to four places."""
    return round(float(np.mean(values)), 4)
