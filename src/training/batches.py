"""Cut a fold's training rows into batches, afresh every epoch."""

import numpy as np

POOL = 16  # batches among which groups are sorted by length


def epoch_batches(
    groups: np.ndarray, lengths: np.ndarray, batch_pairs: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Shuffle whole groups and cut them into batches of about `batch_pairs` rows.

    Args:
        groups: int64[P]; rows with the same number stay together, because they share a question
            that a bi-encoder then encodes once. A group larger than a batch is cut.
        lengths: int64[P], tokens of a row. Batches are filled with groups of similar length
            ("smart batching", Reimers & Gurevych 2019, section 7): sequences are packed without
            padding (models/tokens.py), but attention works on a rectangle. Groups are sorted only
            within pools of `POOL` batches and only roughly, so that an epoch stays random.
        batch_pairs: rows a batch, at most.
        rng: source of the shuffle.

    Returns:
        Row indices; every row occurs exactly once.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    pieces = [
        piece[start : start + batch_pairs]
        for piece in np.split(order, starts[1:])
        for start in range(0, len(piece), batch_pairs)
    ]
    shuffled = [pieces[index] for index in rng.permutation(len(pieces))]
    pool_of = np.cumsum([len(piece) for piece in shuffled]) // (POOL * batch_pairs)
    longest = [lengths[piece].max() for piece in shuffled] * rng.uniform(0.9, 1.1, len(shuffled))
    batches: list[list[np.ndarray]] = [[]]
    size = 0
    for index in np.lexsort((longest, pool_of)):
        if size + len(shuffled[index]) > batch_pairs:
            batches.append([])
            size = 0
        batches[-1].append(shuffled[index])
        size += len(shuffled[index])
    whole = [np.concatenate(batch) for batch in batches if batch]
    return [whole[index] for index in rng.permutation(len(whole))]
