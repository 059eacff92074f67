"""A SentencePiece Unigram vocabulary, what of it Chinese text can use, and its tokenizer."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

# SentencePiece's nmt_nfkc is NFKC after these two foldings.
_DROPPED = r"[\x01-\x08\x0b\x0e-\x1f\x7f\u008f\u009f]"
_SPACES = r"[\t\n\x0c\r \u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"


@dataclass(frozen=True)
class Vocabulary:
    """A Unigram vocabulary (Kudo 2018): `pieces[i]` has log-probability `scores[i]`."""

    pieces: list[str]
    scores: list[float]
    bos: int
    eos: int
    pad: int
    unk: int

    def pruned(self, keep: Sequence[int]) -> "Vocabulary":
        """The vocabulary of the rows `keep`, in that order; `keep` holds all specials."""
        new = {old: index for index, old in enumerate(keep)}
        return Vocabulary(
            [self.pieces[index] for index in keep],
            [self.scores[index] for index in keep],
            *(new[special] for special in (self.bos, self.eos, self.pad, self.unk)),
        )


def chinese_pieces(vocabulary: Vocabulary) -> list[int]:
    """Indices of the specials and of the pieces that Chinese text can use, in order.

    A piece stays when it consists of Han characters, digits, marks, symbols and at most three
    Latin letters: abbreviations such as CT or COPD keep their segmentation, words do not.
    """
    specials = {vocabulary.bos, vocabulary.eos, vocabulary.pad, vocabulary.unk}
    return [
        index
        for index, piece in enumerate(vocabulary.pieces)
        if index in specials or _usable(piece)
    ]


def _usable(piece: str) -> bool:
    letters = [character for character in piece if character.isalpha()]
    latin = [character for character in letters if character.isascii()]
    han = [character for character in letters if unicodedata.name(character)[:3] == "CJK"]
    return len(latin) <= 3 and len(latin) + len(han) == len(letters)


def build_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """A `tokenizers` pipeline that segments as XLM-R's SentencePiece model does."""
    pieces = list(zip(vocabulary.pieces, vocabulary.scores, strict=True))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocabulary.unk))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_DROPPED), ""),
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    bos, eos = (vocabulary.pieces[index] for index in (vocabulary.bos, vocabulary.eos))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, vocabulary.bos), (eos, vocabulary.eos)],
    )
    return tokenizer
