"""TextCNN: convolutions over word vectors and a maximum over time (Kim 2014, CNN-non-static)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....models.tokens import Tokens
from .lexical import LexicalEncoder, masked

WIDTHS = (2, 3, 4)


class TextCnn(LexicalEncoder):
    """`filters` n-gram detectors of each width; a question's vector is how strongly each fired."""

    def __init__(self, table: Tensor, filters: int, dropout: float) -> None:
        super().__init__(table, filters * len(WIDTHS), dropout)
        size = table.shape[1]
        self.convolutions = nn.ModuleList(nn.Conv1d(size, filters, width) for width in WIDTHS)

    def embed(self, tokens: Tokens, pooling: str) -> Tensor:
        """The maximum over time of each filter, whatever `pooling` says.

        A window may reach beyond the question's last word, where it sees zeros: a question of one
        word has windows, too. Windows that begin beyond it are masked.
        """
        rectangle = tokens.unfold(self.vectors(tokens)).transpose(1, 2)  # [B, D, width]
        found = []
        for width, convolution in zip(WIDTHS, self.convolutions, strict=True):
            features = functional.relu(convolution(functional.pad(rectangle, (0, width - 1))))
            found.append(masked(features.transpose(1, 2), tokens).amax(dim=1))
        return torch.cat(found, dim=1).float()
