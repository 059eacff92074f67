"""How much of the data a study uses, so that it ends within the hour on two CPU cores."""

from dataclasses import dataclass

FIRST_SEED = 2020


@dataclass(frozen=True)
class Budget:
    """The size of one study. None means all there is.

    Attributes:
        pairs: training pairs of a trial, at most.
        evaluation: evaluation pairs, at most.
        epochs: of a trial; None: those of the profile.
        seeds: trials of an arm. A seed draws the training pairs, the head, batches and dropout.
    """

    pairs: int | None
    evaluation: int | None
    epochs: int | None
    seeds: int = 3

    @property
    def seed_numbers(self) -> range:
        return range(FIRST_SEED, FIRST_SEED + self.seeds)

    def __str__(self) -> str:
        pairs = "all" if self.pairs is None else f"at most {self.pairs:,}"
        epochs = "the profile's epochs" if self.epochs is None else f"{self.epochs} epoch(s)"
        return f"{pairs} training pairs, {epochs}, {self.seeds} seed(s)"


EVERYTHING = Budget(pairs=None, evaluation=None, epochs=None)
QUICK = Budget(pairs=320, evaluation=400, epochs=1, seeds=1)


def choose_budget(full: Budget, profile: str, quick: bool) -> Budget:
    """The study's own budget; all data where the profile is made for a GPU; little when quick."""
    if quick:
        return QUICK
    return EVERYTHING if profile == "large" else full
