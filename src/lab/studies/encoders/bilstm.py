"""BiLSTM with a maximum over time, the sentence encoder of InferSent (Conneau et al. 2017)."""

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ....models.pooling import pool
from ....models.tokens import Tokens
from .lexical import LexicalEncoder


class BiLstm(LexicalEncoder):
    """One layer, `units` in each direction."""

    def __init__(self, table: Tensor, units: int, dropout: float) -> None:
        super().__init__(table, 2 * units, dropout)
        self.lstm = nn.LSTM(table.shape[1], units, batch_first=True, bidirectional=True)

    def forward(self, tokens: Tokens) -> Tensor:
        """Token vectors [T, 2 · units]. The backward direction begins at each question's end."""
        rectangle = tokens.unfold(self.vectors(tokens))
        packed = pack_padded_sequence(
            rectangle, tokens.lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        output, _ = pad_packed_sequence(self.lstm(packed)[0], True, total_length=tokens.width)
        return tokens.fold(output)

    def embed(self, tokens: Tokens, pooling: str) -> Tensor:
        """The maximum over time, whatever `pooling` says."""
        return pool(self(tokens), tokens, "max")
