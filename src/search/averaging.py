"""The encoder that vectors come from: between the pre-trained and the fine-tuned weights."""

import torch

from ..models.encoder import Encoder

TUNED = 0.5  # share of the fine-tuned weights, as the paper recommends where nothing else is known


@torch.no_grad()
def average(pretrained: Encoder, tuned: Encoder, share: float = TUNED) -> Encoder:
    """`pretrained` with the weighted mean of both encoders' weights, in place.

    Fine-tuning on pairs teaches the cosine to judge them and forgets some of what the encoder knew
    of questions that no pair has shown. The mean of the weights keeps most of both (Wortsman et al.
    2022, "Robust fine-tuning of zero-shot models"). A head that was trained on the tuned vectors
    does not fit those of the mean, so it is for search and export only.

    Args:
        pretrained, tuned: the same architecture; share: of `tuned`, 0 to 1.
    """
    other = tuned.state_dict()
    for name, values in pretrained.state_dict().items():
        if values.is_floating_point():
            values.lerp_(other[name].to(values), share)
    return pretrained
