"""The studies by name; each is imported only when it is run."""

from importlib import import_module

from ...errors import UserError
from .trials.arm import Study

STUDIES = {
    "article": "the published table, on its own split, on a clean one, and on dev",
    "leak": "all pairs of the article's split against a clean one: what the leak is worth",
    "pooling": "pooling × pair features of Sentence-BERT's ablation",
    "objective": "softmax, cosine with MSE, triplets, a contrastive term",
    "encoder": "from averaged word2vec to a fine-tuned Transformer",
    "backbone": "BERT, ALBERT and XLNet, pre-trained here, in both architectures",
    "adversarial": "FGM, PGD and random noise: accuracy, cost, robustness",
    "augmentation": "swap, closure, entity replacement, external pairs",
}


def load_study(name: str) -> Study:
    """The study of that name.

    Raises:
        UserError: there is none.
    """
    if name not in STUDIES:
        raise UserError(f"There is no study '{name}'. Choose one of: {', '.join(STUDIES)}.")
    return import_module(f".{name}", __package__).STUDY
