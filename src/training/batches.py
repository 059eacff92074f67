"""Cut a fold's training rows into batches, afresh every epoch."""

import numpy as np


def epoch_batches(
    groups: np.ndarray, batch_pairs: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Shuffle whole groups and cut them into batches of about `batch_pairs` rows.

    Args:
        groups: int64[P]; rows with the same number stay together, because they share a question
            that a bi-encoder then encodes once. A group larger than a batch is cut.
        batch_pairs: rows a batch, at most.
        rng: source of the shuffle.

    Returns:
        Row indices; every row occurs exactly once.

    There is no bucketing by length: sequences are packed without padding (models/tokens.py), so
    a batch of mixed lengths costs the same and stays a fair sample of the data.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    pieces = [
        piece[start : start + batch_pairs]
        for piece in np.split(order, starts[1:])
        for start in range(0, len(piece), batch_pairs)
    ]
    batches: list[list[np.ndarray]] = [[]]
    size = 0
    for index in rng.permutation(len(pieces)):
        if size + len(pieces[index]) > batch_pairs:
            batches.append([])
            size = 0
        batches[-1].append(pieces[index])
        size += len(pieces[index])
    return [np.concatenate(batch) for batch in batches if batch]
