"""This project against sentence-transformers: pairs and tokens a second, and their ratios."""

from collections.abc import Mapping
from typing import Any

from .hardware import flop_per_token, token_rates
from .scale import Bench
from .theirs import TheirCross, TheirSiamese
from .turns import OURS, THEIRS, Act, race, spread, turn

ONE_ORDER = f"{THEIRS} (one order)"


def compare(bench: Bench) -> dict[str, dict[str, Any]]:
    """Time training and prediction of both architectures by both libraries.

    Returns:
        By subject: `contenders` (pairs_per_s, tokens_per_s, share_of_peak, each a spread) and
        `ratios`: pairs a second of this project over those of a contender of the other library
        in the same precision and, of the fastest precision, over its fp32.
    """
    siamese, cross = bench.ours["siamese"], bench.ours["cross"]
    their_siamese, their_cross = TheirSiamese(bench.directory), TheirCross(bench.directory)
    subjects: dict[str, dict[str, Act]] = {
        "train bi-encoder": {OURS: siamese.train, THEIRS: their_siamese.train},
        "train cross-encoder": {OURS: cross.train, THEIRS: their_cross.train},
        "predict bi-encoder": {OURS: siamese.predict, THEIRS: their_siamese.predict},
        "predict cross-encoder": {
            OURS: cross.predict,
            THEIRS: their_cross.predict_both_orders,
            ONE_ORDER: their_cross.predict,
        },
    }
    return {subject: _measure(bench, subject, acts) for subject, acts in subjects.items()}


def _measure(bench: Bench, subject: str, acts: Mapping[str, Act]) -> dict[str, Any]:
    training, precisions = subject.startswith("train"), bench.precisions
    pairs = bench.scale.train_pairs if training else bench.scale.predict_pairs
    turns = {
        (library, precision): turn(act, bench.frame, pairs, precision)
        for precision in precisions
        for library, act in acts.items()
    }
    works = race(turns, bench.scale.rounds, subject)
    flop = flop_per_token(bench.ours["siamese"].model.encoder, training)
    compared = [(p, p) for p in precisions]
    if len(precisions) > 1:
        compared.append((bench.fastest, precisions[0]))
    return {
        "contenders": {
            f"{library}, {precision}": {"pairs_per_s": spread(work["pairs"] / work["seconds"])}
            | token_rates(work, flop, bench.peaks[precision])
            for (library, precision), work in works.items()
        },
        # Within a round both had the same pairs.
        "ratios": {
            f"{mine} / {library} {other}": spread(
                works[library, other]["seconds"] / works[OURS, mine]["seconds"]
            )
            for library in list(acts)[1:]
            for mine, other in compared
        },
    }
