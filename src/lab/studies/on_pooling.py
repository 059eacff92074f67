"""Pooling × pair features: the ablation of Sentence-BERT (Reimers & Gurevych 2019, section 6).

Their table 6 finds the features decisive for the classification objective, |u − v| above all, and
the pooling hardly. They trained on natural language inference, where the order of a pair means
something; here it does not, and the head's answer is symmetric in u and v.
"""

from .small_batches import NOTE, small_batch_member
from .trials.arm import Design, Study, Workplace
from .trials.budget import Budget
from .trials.standard import member_arm, official_column

POOLINGS = ("mean", "cls", "max")
FEATURES = (
    ("u", "v"),
    ("|u-v|",),
    ("u*v",),
    ("|u-v|", "u*v"),
    ("u", "v", "u*v"),
    ("u", "v", "|u-v|"),
    ("u", "v", "|u-v|", "u*v"),
)


def arm_name(pooling: str, features: tuple[str, ...]) -> str:
    """As in "mean (u, v, |u-v|)"."""
    return f"{pooling} ({', '.join(features)})"


REFERENCE = arm_name("mean", ("u", "v", "|u-v|"))


def design(place: Workplace) -> Design:
    """Every pooling with every combination of features."""
    base = small_batch_member(place.config, "siamese", place.budget)
    arms = [
        member_arm(
            arm_name(pooling, features),
            base.model_copy(update={"pooling": pooling, "features": features}),
            REFERENCE,
        )
        for pooling in POOLINGS
        for features in FEATURES
    ]
    return Design(arms, [official_column(place)])


STUDY = Study(
    title="Pooling and pair features of the bi-encoder",
    full=Budget(pairs=560, evaluation=1000, epochs=3),
    design=design,
    caption=NOTE,
)
