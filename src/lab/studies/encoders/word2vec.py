"""Word vectors by skip-gram with negative sampling (Mikolov et al. 2013), with gensim."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .text_vocabulary import TextVocabulary, segment

WINDOW, NEGATIVE, EPOCHS = 5, 5, 20


def skip_gram(questions: Sequence[str], vocabulary: TextVocabulary, size: int, seed: int) -> Tensor:
    """Vectors float32[V, size] of a vocabulary, trained on `questions`; the unknown's are zero.

    One thread, because gensim's threads race for the weights: the same seed gives the same
    vectors. They are scaled to a mean squared component of 1, as the heads expect.
    """
    from gensim.models import Word2Vec  # here, because gensim takes a second to import

    model = Word2Vec(
        [segment(text, vocabulary.unit) for text in questions],
        vector_size=size,
        window=WINDOW,
        negative=NEGATIVE,
        sg=1,
        min_count=1,
        epochs=EPOCHS,
        workers=1,
        seed=seed,
    )
    table = torch.zeros(len(vocabulary), size)
    for index, unit in enumerate(vocabulary.units):
        if unit in model.wv:
            table[index] = torch.from_numpy(model.wv[unit].copy())
    return table / table[1:].square().mean().sqrt()
