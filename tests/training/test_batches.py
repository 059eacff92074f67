"""Batches: every row once, groups whole, no batch too large, the order drawn from the seed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from src.training.batches import epoch_batches

GROUPS = st.lists(st.integers(0, 12), max_size=80).map(lambda rows: np.array(rows, np.int64))
SIZES = st.integers(1, 20)


def cut(groups: np.ndarray, size: int, seed: int = 0) -> list[np.ndarray]:
    lengths = np.random.default_rng(9).integers(4, 40, len(groups))
    return epoch_batches(groups, lengths, size, np.random.default_rng(seed))


@given(GROUPS, SIZES, st.integers(0, 99))
def test_every_row_occurs_exactly_once(groups, size, seed):
    rows = [row for batch in cut(groups, size, seed) for row in batch]
    assert sorted(rows) == list(range(len(groups)))


@given(GROUPS, SIZES, st.integers(0, 99))
def test_no_batch_is_empty_or_too_large(groups, size, seed):
    assert all(1 <= len(batch) <= size for batch in cut(groups, size, seed))


@given(GROUPS, SIZES, st.integers(0, 99))
def test_a_group_is_cut_only_where_it_exceeds_a_batch(groups, size, seed):
    batches = cut(groups, size, seed)
    for group in np.unique(groups):
        holders = [batch for batch in batches if group in groups[batch]]
        assert len(holders) == -(-np.sum(groups == group) // size)


def test_rows_without_groups_fill_all_batches_but_one():
    assert sorted(len(batch) for batch in cut(np.arange(70), 32)) == [6, 32, 32]


def test_a_batch_holds_rows_of_similar_length():
    rng = np.random.default_rng(0)
    lengths = rng.integers(4, 60, 2000)
    batches = epoch_batches(np.arange(2000), lengths, 50, rng)
    spread = np.mean([np.ptp(lengths[batch]) for batch in batches])
    assert spread < np.ptp(lengths) / 4


@given(GROUPS, SIZES, st.integers(0, 99))
def test_the_seed_decides(groups, size, seed):
    first, second = cut(groups, size, seed), cut(groups, size, seed)
    assert len(first) == len(second)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_another_epoch_is_another_order():
    groups = np.arange(100) // 4
    rng = np.random.default_rng(0)
    epochs = [epoch_batches(groups, np.full(100, 13), 10, rng) for _ in range(2)]
    orders = [np.concatenate(batches).tolist() for batches in epochs]
    orders.append(np.concatenate(cut(groups, 10, seed=1)).tolist())
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert all(order != list(range(100)) for order in orders)


def test_which_groups_meet_in_a_batch_changes():
    """Shuffling the batches alone would leave the same rows together for ever."""
    groups = np.arange(1000)
    partners = [{frozenset(batch.tolist()) for batch in cut(groups, 10, seed)} for seed in (0, 1)]
    assert not partners[0] & partners[1]
