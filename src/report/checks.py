"""What every score asks of its rows, checked, so that none is computed from misaligned arrays."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def hits(labels: ArrayLike, predictions: ArrayLike) -> NDArray[np.bool_]:
    """Where the prediction is right, after checking both."""
    labels = binary(labels, "label")
    return labels == binary(same_length(predictions, labels), "prediction")


def binary(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """`values` as integers, all 0 or 1."""
    values = np.asarray(values)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"A score needs one {name} a row and at least one row.")
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"Every {name} must be 0 or 1; unlabelled rows must be left out.")
    return values.astype(np.int64)


def same_length(values: ArrayLike, reference: NDArray) -> NDArray:
    """`values` as an array, as long as `reference`."""
    values = np.asarray(values)
    if values.shape != reference.shape:
        raise ValueError(f"{values.shape} values do not align with {reference.shape} rows.")
    return values


def finite(values: NDArray, name: str) -> NDArray[np.float64]:
    """`values` as float64 without NaN and infinity."""
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"A {name} is not a finite number.")
    return values


def pair_losses(labels: ArrayLike, logits: ArrayLike) -> NDArray[np.float64]:
    """float64[P]: negative log-likelihood of each label, in nats; exact for logits of any size.

    Raises:
        ValueError: no rows, different lengths, a label outside {0, 1}, a logit not finite.
    """
    labels = binary(labels, "label")
    logits = finite(same_length(logits, labels), "logit")
    return np.logaddexp(0.0, np.where(labels == 1, -logits, logits))
