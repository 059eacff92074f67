"""Optuna's search for weights, threshold and group rule, on out-of-fold predictions only."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import optuna
from optuna.samplers import TPESampler
from optuna.storages import InMemoryStorage, get_storage
from optuna.study import StudyDirection
from sqlalchemy import URL, create_engine
from sqlalchemy.exc import SQLAlchemyError

from ..config import Config
from ..errors import UserError
from ..files import save_array, write_json
from ..layout import Layout
from .combine import Decision, blend, blend_alike
from .count_prior import CountPrior
from .cross_fit import cross_fitted_labels
from .group_rule import GroupRule, log_loss, weigh
from .predicted import Predicted

THRESHOLD_RANGE = 1.0  # logits; probabilities 0.27 to 0.73


def write_decision(config: Config, layout: Layout, folder: Path) -> None:
    """Write decision.json, tuned on all folds, and cross_fitted.npy, tuned without each fold."""
    train = Predicted.out_of_fold(layout)
    # Machines that share a storage share a study only when they search the same thing.
    columns = [
        train.frame["label"].to_numpy(),
        layout.fold_numbers(),
        *train.logits.values(),
        *train.alike.values(),
    ]
    digest = hashlib.sha256(b"".join(column.tobytes() for column in columns))
    digest.update(repr((list(train.logits), list(train.alike), config.tune.seed)).encode())
    content = digest.hexdigest()[:12]
    search = Search(
        config.tune.trials,
        config.tune.seed,
        config.optuna.storage or _sqlite(folder.resolve() / "study.db"),
        config.optuna.storage is not None,
        f"{config.profile}-{content}",
    )
    failed = set(layout.learned_nothing())
    if failed == set(train.logits):  # then there is nothing better to take
        failed = set()
    tuned = partial(tune, search, failed=failed)
    cross_fitted = cross_fitted_labels(train, layout.fold_numbers(), tuned)
    save_array(folder / "cross_fitted.npy", cross_fitted)
    write_json(folder / "decision.json", asdict(tuned(train, "all-folds")))


def _sqlite(path: Path) -> str:
    """Its URL; the path may hold what means something in a URL (?, #, %)."""
    return URL.create("sqlite", database=str(path)).render_as_string()


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


@dataclass(frozen=True)
class Search:
    """How Optuna searches (TPE: Bergstra et al. 2011), the same for all studies of a run.

    Attributes:
        storage: Optuna storage URL.
        resumable: continue a study that is there already; otherwise it is started afresh, which
            makes the result a function of the seed even after a kill.
        run: begins the studies' names. Several machines that use the same storage and name share
            one study.
    """

    trials: int
    seed: int
    storage: str
    resumable: bool
    run: str

    def minimise(
        self, name: str, loss: Callable[[optuna.Trial], float], first: dict[str, float]
    ) -> dict[str, float]:
        """The parameters with the lowest loss; those of `first` are the first trial."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        # In SQLite a trial waits for the disk ten times: longer than all the arithmetic takes.
        memory = InMemoryStorage()
        study = optuna.create_study(
            storage=self.storage if self.resumable else memory,
            study_name=f"{self.run}-{name}",
            load_if_exists=self.resumable,
            direction=StudyDirection.MINIMIZE,
        )
        # A machine that joins a study must not repeat the draws of those before it.
        study.sampler = TPESampler(seed=self.seed + len(study.trials))
        if not study.trials:
            study.enqueue_trial(first)
        remaining = self.trials - sum(trial.state.is_finished() for trial in study.trials)
        if remaining > 0:
            study.optimize(loss, n_trials=remaining)
        if not self.resumable:
            home = get_storage(self.storage)
            if study.study_name in {other.study_name for other in home.get_all_studies()}:
                optuna.delete_study(study_name=study.study_name, storage=home)
            optuna.copy_study(
                from_study_name=study.study_name, from_storage=memory, to_storage=home
            )
        return study.best_params


def tune(search: Search, train: Predicted, part: str, failed: Collection[str] = ()) -> Decision:
    """Weights, threshold and group rule of the lowest log loss.

    Accuracy, the competition's metric, is a step function of them: the best of many trials owes its
    last pairs to luck and loses them on other pairs. The log loss moves with every pair
    (docs/experiments.md). Equal weights with the threshold 0 are the first trial, so the search
    never returns anything worse on the data it sees.

    Args:
        train: out-of-fold predictions with labels 0 and 1.
        part: names the studies.
        failed: members whose weight is 0.
    """
    labels = train.frame["label"].to_numpy()
    able = {name: logits for name, logits in train.logits.items() if name not in failed}
    equal = {f"weight/{name}": 1.0 for name in able} | {"threshold": 0.0}
    best = search.minimise(part, partial(_pair_loss, able, labels), equal)
    raw = {name: best.get(f"weight/{name}", 0.0) for name in train.logits}
    weights = {name: value / sum(raw.values()) for name, value in raw.items()}

    prior = CountPrior.of(train.frame)
    alike = blend_alike(train.alike, weights)
    groups = list(weigh(train.frame, blend(train.logits, weights), alike, prior))
    if not groups:
        return Decision(weights, best["threshold"], GroupRule(prior=prior), tuple(train.alike))

    def group_loss(trial: optuna.Trial) -> float:
        scale = trial.suggest_float("scale", 0.1, 3.0)
        intercept = trial.suggest_float("intercept", -2.0, 2.0)
        kinship = 0.0 if alike is None else trial.suggest_float("kinship", 0.0, 1.0)
        return log_loss(groups, np.array([scale, intercept, kinship]), labels)

    first = {"scale": 1.0, "intercept": 0.0}
    rule = GroupRule(**search.minimise(f"{part}-groups", group_loss, first), prior=prior)
    return Decision(weights, best["threshold"], rule, tuple(train.alike))


def _pair_loss(logits: Mapping[str, np.ndarray], labels: np.ndarray, trial: optuna.Trial) -> float:
    """The log loss of the blend that a trial suggests, minus its threshold."""
    weights = {name: trial.suggest_float(f"weight/{name}", 0.0, 1.0) for name in logits}
    threshold = trial.suggest_float("threshold", -THRESHOLD_RANGE, THRESHOLD_RANGE)
    if not any(weights.values()):
        raise optuna.TrialPruned
    margin = blend(logits, weights) - threshold
    return float(np.logaddexp(0.0, np.where(labels == 1, -margin, margin)).mean())
