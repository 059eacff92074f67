"""The README of an exported model."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..files import read_json
from ..training.fold_model import FoldModel
from .chosen import Chosen
from .matcher import Matcher

TEMPLATE = "model_card.md.j2"
# Of the encoders whose licence is known here; that of any other is for its user to state.
_LICENCES = {"e5-small-zh": "mit", "tiny": "mit"}
_DATA = (
    "Tianchi competition 231776 (Covid-19 similar sentence pairs; Chinese, ten respiratory "
    "diseases)"
)
_SAMPLE = "this project's small sample, which shows the machinery at work and no more"


def model_card(matcher: Matcher, chosen: Chosen, model: FoldModel, int8: bool) -> str:
    """Model card of an exported directory, of the bi-encoder or of the cross-encoder."""
    cross = chosen.member.architecture == "cross"
    encoder = Path(chosen.member.encoder)
    # A text file of our own and names of settings: nothing here is HTML.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE).render(
        cross=cross,
        licence=_LICENCES.get(str(encoder), ""),
        data=_SAMPLE if read_json(matcher.layout.facts_file)["is_sample"] else _DATA,
        name=chosen.name,
        profile=matcher.config.profile,
        fold=chosen.fold,
        loss=chosen.loss,
        # Of a directory only its name, not where it lay.
        encoder=encoder.name if encoder.is_dir() else encoder,
        parameters=sum(p.numel() for p in model.model.parameters()) / 1e6,
        length=(2 if cross else 1) * chosen.member.max_length,
        width=model.model.encoder.hidden_size,
        int8=int8,
    )
