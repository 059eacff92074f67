"""How many of the 95.7 points were leakage? All pairs of the article's split, and of a clean one.

The profile's first bi-encoder, plain and with FGM, on the three splits of study `article`, none of
them cut. The first two have the same augmented pairs. In the article's own split 101 of 800
evaluated pairs stand in training, and both questions of 71 % do; in the other no question does. On
a CPU the first bi-encoder is the n-gram one, which is cheap enough to see every pair.
"""

from ...config import AdversarialConfig
from ...errors import UserError
from .on_article import three_splits
from .trials.arm import Design, Study, Workplace
from .trials.budget import Budget
from .trials.standard import member_arm, with_training

REFERENCE = "SBERT"


def design(place: Workplace) -> Design:
    """One architecture, without and with FGM."""
    members = place.config.members.values()
    found = next((member for member in members if member.architecture == "siamese"), None)
    if found is None:
        raise UserError(f"Profile '{place.config.profile}' has no siamese member to train.")
    arms = []
    epochs = place.budget.epochs or found.training.epochs
    attack = AdversarialConfig(method="fgm")
    for name, adversarial in ((REFERENCE, AdversarialConfig()), (f"{REFERENCE} + FGM", attack)):
        member = with_training(found, epochs=epochs, adversarial=adversarial)
        arms.append(member_arm(name, member, REFERENCE))
    return Design(arms, *three_splits(place))


STUDY = Study(
    title="What the leak of the article's split is worth",
    full=Budget(pairs=None, evaluation=None, epochs=3),
    design=design,
    caption="The article reports 95.7 % on its own split, with RoBERTa-wwm-large.",
)
