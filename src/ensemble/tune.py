"""Optuna's search for member weights and threshold, on out-of-fold predictions only."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import optuna
from optuna.samplers import TPESampler
from optuna.storages import InMemoryStorage, get_storage
from optuna.study import StudyDirection
from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError

from ..config import Config
from ..errors import UserError
from ..files import save_array, write_json
from ..layout import Layout
from .combine import Decision, blend
from .cross_fit import cross_fitted_labels

THRESHOLD_RANGE = 1.0  # logits; probabilities 0.27 to 0.73


def write_decision(config: Config, layout: Layout, folder: Path) -> None:
    """Write decision.json, tuned on all folds, and cross_fitted.npy, tuned without each fold."""
    labels = layout.train()["label"].to_numpy()
    logits = layout.out_of_fold()
    storage = config.optuna.storage or f"sqlite:///{folder.resolve() / 'study.db'}"
    # Machines that share a storage share a study only when they search the same thing.
    content = hashlib.sha256(labels.tobytes() + b"".join(v.tobytes() for v in logits.values()))

    def search(
        some_logits: Mapping[str, np.ndarray], some_labels: np.ndarray, part: str
    ) -> Decision:
        return tune(
            some_logits,
            some_labels,
            trials=config.tune.trials,
            seed=config.tune.seed,
            storage=storage,
            study_name=f"{config.profile}-{part}-{content.hexdigest()[:12]}",
            resumable=config.optuna.storage is not None,
        )

    cross_fitted = cross_fitted_labels(logits, labels, layout.fold_numbers(), search)
    save_array(folder / "cross_fitted.npy", cross_fitted)
    write_json(folder / "decision.json", asdict(search(logits, labels, "all-folds")))


def check_storage(url: str) -> None:
    """See that there is a database behind an Optuna URL; nothing is written to it.

    Raises:
        UserError: there is none, or no driver for it. The URL, which may hold a password, is not
            repeated.
    """
    try:
        create_engine(url).connect().close()
    except ImportError as error:
        raise UserError(
            "optuna.storage: the driver of this kind of database is not installed. Install it "
            "beside the other packages: .venv/bin/pip install pymysql (mysql+pymysql://…), "
            "psycopg[binary] (postgresql+psycopg://…)."
        ) from error
    except (SQLAlchemyError, ValueError) as error:
        raise UserError(
            f"optuna.storage cannot be opened ({type(error).__name__}). Give a URL such as "
            "sqlite:///study.db or mysql+pymysql://user:password@host/name, of a server that runs."
        ) from error


def tune(
    logits: Mapping[str, np.ndarray],
    labels: np.ndarray,
    *,
    trials: int,
    seed: int,
    storage: str,
    study_name: str,
    resumable: bool,
) -> Decision:
    """Weights and threshold of the lowest log loss (TPE: Bergstra et al. 2011).

    Accuracy, the competition's metric, is a step function of weights and threshold: the best of
    many trials owes its last pairs to luck and loses them on other pairs. The loss of the blend
    minus the threshold moves with every pair (docs/experiments.md).

    Equal weights with the threshold 0 are the first trial, so the search never returns anything
    worse on the data it sees.

    Args:
        logits: float64[P] a member, out of fold.
        labels: int[P], 0 or 1.
        storage: Optuna storage URL.
        study_name: several machines that use the same storage and name share one study.
        resumable: continue a study that is there already; otherwise it is started afresh, which
            makes the result a function of the seed even after a kill.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = list(logits)
    # In SQLite a trial waits for the disk ten times, which takes longer than all the arithmetic.
    memory = InMemoryStorage()
    study = optuna.create_study(
        storage=storage if resumable else memory,
        study_name=study_name,
        load_if_exists=resumable,
        direction=StudyDirection.MINIMIZE,
    )
    # A machine that joins a study must not repeat the draws of those before it.
    study.sampler = TPESampler(seed=seed + len(study.trials))

    if not study.trials:
        study.enqueue_trial({f"weight/{name}": 1.0 for name in names} | {"threshold": 0.0})
    remaining = trials - sum(trial.state.is_finished() for trial in study.trials)
    if remaining > 0:
        study.optimize(partial(_loss, logits, labels), n_trials=remaining)
    if not resumable:
        home = get_storage(storage)
        if study_name in {study.study_name for study in home.get_all_studies()}:
            optuna.delete_study(study_name=study_name, storage=home)
        optuna.copy_study(from_study_name=study_name, from_storage=memory, to_storage=home)
    best = study.best_params
    raw = {name: best[f"weight/{name}"] for name in names}
    return Decision(
        {name: value / sum(raw.values()) for name, value in raw.items()}, best["threshold"]
    )


def _loss(logits: Mapping[str, np.ndarray], labels: np.ndarray, trial: optuna.Trial) -> float:
    """The log loss of the blend that a trial suggests, minus its threshold."""
    weights = {name: trial.suggest_float(f"weight/{name}", 0.0, 1.0) for name in logits}
    threshold = trial.suggest_float("threshold", -THRESHOLD_RANGE, THRESHOLD_RANGE)
    if not any(weights.values()):
        raise optuna.TrialPruned
    margin = blend(logits, weights) - threshold
    return float(np.logaddexp(0.0, np.where(labels == 1, -margin, margin)).mean())
