"""The trained models as a library: encode, score pairs, search, rerank."""

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import expit

from ..config import Config, load_config
from ..errors import UserError
from ..layout import Layout
from ..models.precision import autocast
from ..models.registry import load_encoder
from ..pipeline import Pipeline
from ..training.fold_model import FoldModel, load_fold_model
from .chosen import Chosen, choose
from .corpus import has_words, is_readable
from .encode import Reading, average, encode
from .nearest import exact_nearest

_LIBRARIES = ("torch", "transformers", "tokenizers")


@dataclass(frozen=True)
class Hit:
    """A question that was found: its row in the corpus, and a score in [-1, 1] (a cosine) or,
    after reranking, in [0, 1] (the cross-encoder's probability)."""

    row: int
    question: str
    score: float


class Matcher:
    """One trained bi-encoder, and the cross-encoder once it is asked for.

    Attributes:
        chosen: which fold model answers, see `choose`.
        bi: its network, tokenizer and settings.
        encoder: gives the vectors, see `encode.average`.
        precision: of the vectors and the bi-encoder's answers. Where none is asked for, each of
            the two models computes in what its own member was trained with.
    """

    def __init__(self, config: Config, layout: Layout, precision: str | None = None) -> None:
        self.config, self.layout, self._asked_precision = config, layout, precision
        self.chosen = choose(config, layout, "siamese")
        self.bi = self._load(self.chosen)
        self.precision = self.bi.model.precision
        untuned, _ = load_encoder(self.bi.member.encoder, config.paths.pretrained)
        self.encoder = average(untuned.to(self.bi.model.device).eval(), self.bi.model.encoder)

    def _load(self, chosen: Chosen) -> FoldModel:
        found = load_fold_model(chosen.folder, self.config.paths.pretrained)
        found.model.precision = self._asked_precision or found.model.precision
        return found

    @classmethod
    def load(
        cls, profile: str = "small", *overrides: str, precision: str | None = None
    ) -> "Matcher":
        """The models that `bash run.sh --profile PROFILE [key=value ...]` has trained.

        Raises:
            UserError: they are not trained.
        """
        return cls.of(load_config(profile, list(overrides)), precision)

    @classmethod
    def of(cls, config: Config, precision: str | None = None) -> "Matcher":
        """The models that were trained under a configuration."""
        return cls(config, Pipeline(config).trained_layout(), precision)

    @cached_property
    def chosen_cross(self) -> Chosen:
        """Which cross-encoder reranks."""
        return choose(self.config, self.layout, "cross")

    @cached_property
    def cross(self) -> FoldModel:
        """The cross-encoder, loaded on first use."""
        return self._load(self.chosen_cross)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What the vectors depend on besides the questions, JSON-able.

        The encoder is identified by its weights as they are used, because both the tuned and the
        untuned ones go into them.
        """
        digest = hashlib.sha256()
        for name, values in sorted(self.encoder.state_dict().items()):
            digest.update(name.encode())
            digest.update(values.cpu().contiguous().numpy().reshape(-1))
        tokenizer = json.loads(self.bi.tokenizer.backend_tokenizer.to_str())
        del tokenizer["truncation"], tokenizer["padding"]  # they change with every call
        with autocast(self.encoder.device, self.precision):
            in_bf16 = torch.is_autocast_enabled(self.encoder.device.type)
        return {
            "encoder": digest.hexdigest(),
            "tokenizer": hashlib.sha256(json.dumps(tokenizer).encode()).hexdigest(),
            "member": self.bi.member.model_dump(mode="json"),
            "bf16": in_bf16,  # "auto" is another precision on another machine
            "versions": {name: importlib.metadata.version(name) for name in _LIBRARIES},
        }

    def encode(
        self, questions: Sequence[str], out: np.ndarray | None = None, progress: str = ""
    ) -> np.ndarray:
        """Vectors float32[n, H] of length 1; their products are cosines. See `encode.encode`."""
        reading = Reading.of(self.bi.member, self.precision)
        return encode(self.encoder, self.bi.tokenizer, questions, reading, out, progress)

    def encode_query(self, query: str) -> np.ndarray:
        """Vector float32[1, H] of one question that a person typed.

        Raises:
            UserError: there is no letter or digit in it, or it came in another encoding.
        """
        if not is_readable(query):
            raise UserError(
                "The question is not in the terminal's encoding. Type it in UTF-8, or name the "
                "encoding of what is piped in: PYTHONIOENCODING=gbk bash run.sh search …"
            )
        if not has_words(query):
            raise UserError(
                f"There is no letter or digit in the question {query.strip()!r}, so there is "
                "nothing to look for. Ask in words."
            )
        return self.encode([query.strip()])

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Probabilities float64[P] that the two questions are the same, by the bi-encoder.

        Raises:
            UserError: something is no pair of questions; names its position.
        """
        return _probabilities(self.bi, pairs)

    def rerank(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """As `score`, by the cross-encoder, which reads both orders of a pair, in the precision
        of its own member unless another was asked for."""
        return _probabilities(self.cross, pairs)

    def search(self, query: str, questions: Sequence[str], top: int = 5) -> list[Hit]:
        """The `top` questions nearest to `query` by cosine, best first. For a large corpus see
        `index.build_index`, which encodes it once."""
        scores, rows = exact_nearest(self.encode_query(query), self.encode(questions), top)
        return [
            Hit(int(row), questions[row], float(score))
            for score, row in zip(scores[0], rows[0], strict=True)
        ]


def _probabilities(model: FoldModel, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    for number, pair in enumerate(pairs):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise UserError(f"pair {number}: {pair!r} is no pair. Give two questions each.")
        for question, which in zip(pair, ("first", "second"), strict=True):
            refuse_what_is_no_question(question, f"pair {number}: its {which} question")
    if len(pairs) == 0:
        return np.zeros(0)
    return expit(model.predict(pd.DataFrame(list(pairs), columns=["query1", "query2"])))


def refuse_what_is_no_question(question: Any, name: str) -> None:
    """See that a question is a text with something in it.

    Raises:
        UserError: it is not; says so of `name`.
    """
    if not isinstance(question, str):
        raise UserError(f"{name} is {question!r}, which is no text.")
    if not question.strip():
        raise UserError(f"{name} is blank.")
