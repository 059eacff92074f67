"""What the cosine of the vectors is worth: judging pairs, finding duplicates, making clusters."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score, roc_curve

from ...data.graph import components, wording
from ...errors import UserError
from ...models.api import Encoder
from ...models.registry import load_encoder
from ...report.intervals import mean_gain
from ...search.cluster import agreement, cluster, numbers
from ...search.duplicates import labelled_groups, retrieval
from ...search.encode import Reading, average, encode
from ...search.matcher import Matcher
from ...search.threshold import best_threshold
from ...training.fold_model import load_fold_model

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the tuned weights
Encode = Callable[[Sequence[str]], np.ndarray]


def on_dev(matcher: Matcher) -> dict[str, Any]:
    """The untuned encoder, the tuned one, the mean that search and export use, and the head."""
    dev, tuned = dev_table(matcher), matcher.bi.model.encoder
    encoders = {"untuned": _untuned(matcher), "tuned": tuned, "mean": matcher.encoder}
    head = matcher.score(list(zip(dev["query1"], dev["query2"], strict=True)))
    return {
        **{name: _quality(matcher, _with(matcher, found)) for name, found in encoders.items()},
        "head_accuracy": share((head > 0.5) == (dev["label"] == 1)),
        "head_auc": share(roc_auc_score(dev["label"], head)),
    }


def _quality(matcher: Matcher, encode: Encode) -> dict[str, float]:
    """Thresholds are chosen on the chosen fold's own training rows, everything else is dev."""
    own, dev = _own_rows(matcher), dev_table(matcher)
    own_questions, own_groups = labelled_groups(own)
    own_vectors = encode(own_questions)
    cut = pair_threshold(own, own_questions, own_vectors)
    group_cut, _ = best_threshold(own_vectors, own_groups)
    questions, groups = labelled_groups(dev)
    vectors = encode(questions)
    cosines = pair_cosines(dev, questions, vectors)
    found = retrieval(vectors, groups)
    result = agreement(groups, numbers(cluster(vectors, group_cut), len(questions)))
    return {
        "accuracy": share((cosines >= cut) == (dev["label"] == 1)),
        "auc": share(roc_auc_score(dev["label"], cosines)),
        "queries": len(found.ranks),
        "among": len(questions),
        "recall_at_1": share(found.recall_at_1),
        "mrr": share(found.mrr),
        "cluster_threshold": share(group_cut),
        "cluster_precision": share(result.precision),
        "cluster_recall": share(result.recall),
        "adjusted_rand": share(result.adjusted_rand),
    }


def out_of_fold(matcher: Matcher) -> dict[str, Any]:
    """How much of the tuned weights the mean should have, on every fold's own rows of train.

    The gain is over the untuned encoder, with its 95 % interval over components of questions.
    """
    layout, pretrained = matcher.layout, matcher.config.paths.pretrained
    train, folds = layout.train(), layout.fold_numbers()
    areas: list[dict[float, float]] = []
    firsts: list[pd.DataFrame] = []  # of every question with a duplicate: is that one nearest?
    together: list[np.ndarray] = []  # the components of these questions
    for fold in range(layout.folds):
        tuned = load_fold_model(layout.fold_model(matcher.chosen.name, fold), pretrained).model
        own = train[folds == fold]
        questions, groups = labelled_groups(own)
        area, first = {}, {}
        for part in SHARES:
            vectors = _with(matcher, average(_untuned(matcher), tuned.encoder, part))(questions)
            found = retrieval(vectors, groups)
            first[part] = (found.ranks == 1).astype(float)
            area[part] = roc_auc_score(own["label"], pair_cosines(own, questions, vectors))
        areas.append(area)
        firsts.append(pd.DataFrame(first))
        # Components are numbered in each fold anew.
        together.append(_components(own, questions, groups)[found.groups] + len(train) * fold)
    first, component = pd.concat(firsts), np.concatenate(together)
    rows = {}
    for part in SHARES:
        gain, *interval = mean_gain((first[part] - first[0.0]).to_numpy(), component)
        rows[f"{part:g}"] = {
            "recall_at_1": share(first[part]),
            "gain": share(gain),
            "gain_interval": [share(end) for end in interval],
            "auc": share([area[part] for area in areas]),
        }
    return {"queries": len(component), "share of the tuned weights": rows}


def _components(frame: pd.DataFrame, questions: list[str], groups: np.ndarray) -> np.ndarray:
    """int64: group → the component of the question graph that it is part of."""
    rows = components(frame, key=wording)
    of_question = dict(zip([*frame["query1"], *frame["query2"]], [*rows, *rows], strict=True))
    found = np.full(groups.max() + 1, -1)
    found[groups] = [of_question[question] for question in questions]
    return found


def _untuned(matcher: Matcher) -> Encoder:
    encoder, _ = load_encoder(matcher.bi.member.encoder, matcher.config.paths.pretrained)
    return encoder.to(matcher.encoder.device)


def _with(matcher: Matcher, encoder: Encoder) -> Encode:
    reading = Reading.of(matcher.bi.member, matcher.precision)
    return lambda questions: encode(encoder, matcher.bi.tokenizer, questions, reading)


def dev_table(matcher: Matcher) -> pd.DataFrame:
    """The labelled pairs on which everything is measured.

    Raises:
        UserError: the run has none.
    """
    dev = matcher.layout.table("dev")
    if dev is None:
        raise UserError(f"The run in {matcher.layout.work} has no dev file to measure search on.")
    return dev


def _own_rows(matcher: Matcher) -> pd.DataFrame:
    return matcher.layout.train()[matcher.layout.fold_numbers() == matcher.chosen.fold]


def own_threshold(matcher: Matcher, encode: Encode) -> float:
    """`pair_threshold` on the rows of train that the chosen fold's model was not trained on."""
    own = _own_rows(matcher)
    questions, _ = labelled_groups(own)
    return pair_threshold(own, questions, encode(questions))


def pair_threshold(frame: pd.DataFrame, questions: list[str], vectors: np.ndarray) -> float:
    """The cosine from which on pairs count as the same, with the highest accuracy on `frame`."""
    false, true, cuts = roc_curve(frame["label"], pair_cosines(frame, questions, vectors))
    positive = float(np.mean(frame["label"]))
    return float(cuts[np.argmax(true * positive + (1 - false) * (1 - positive))])


def pair_cosines(frame: pd.DataFrame, questions: list[str], vectors: np.ndarray) -> np.ndarray:
    """Cosine of each pair of a frame, whose questions' vectors of length 1 are given."""
    places = pd.Index(questions)
    left, right = (vectors[places.get_indexer(frame[name])] for name in ("query1", "query2"))
    return np.einsum("ij,ij->i", left, right)


def share(values: Any) -> float:
    """The mean, to four places."""
    return round(float(np.mean(values)), 4)
