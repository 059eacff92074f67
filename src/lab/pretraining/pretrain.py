"""Pre-training as a step: a model directory from a model directory and questions."""

import hashlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from ...config import PretrainConfig
from ...errors import UserError
from ...files import write_json
from ...models.registry import family_of, find_source
from ...pipeline import Pipeline
from ...step import Step
from .language_model import head_warning, load, save
from .pretrain_loop import pretrain
from .questions import collect
from .tasks import make_task

ALL_FOLDS_READ = (
    "No question of dev was read, but those of train were, of all folds: a cross-validation score "
    "with such an encoder is on questions that it has read, without their labels."
)


def pretraining_step(
    name: str,
    source: str,
    questions: Sequence[str],
    settings: PretrainConfig,
    folder: Path,
    *,
    from_scratch: bool = False,
) -> Step:
    """Trains the model `source` (a directory or a hub name) on `questions` into `folder`.

    The folder is a model directory like any other, with the language-model head, so that it can
    be pre-trained further; pretraining.json holds the mean loss of each epoch. A head that is
    missing or random is warned of, unless that is the intention (`from_scratch`).

    Raises:
        UserError: `folder` is the source, which would be lost.
    """
    if Path(source).resolve() == folder.resolve():
        raise UserError(
            f"{folder} would be pre-trained into itself, and its weights be lost. Copy it to "
            "another place and name the copy, or name another paths.work."
        )
    weights = Path(source) / "model.safetensors"
    return Step(
        f"pre-train {name} on {len(questions):,} questions",
        folder,
        partial(_make, name, source, questions, settings, from_scratch),
        reads=[weights] if weights.is_file() else [],
        settings={
            "source": source,
            "settings": settings.model_dump(),
            "questions": hashlib.sha256("\n".join(questions).encode()).hexdigest(),
        },
    )


def _make(
    name: str,
    source: str,
    questions: Sequence[str],
    settings: PretrainConfig,
    from_scratch: bool,
    folder: Path,
) -> None:
    torch.manual_seed(settings.seed)  # a missing head and the row of a new mask token are drawn
    model, tokenizer, missing = load(source, settings.dropout)
    checked = (name, missing, model, tokenizer, questions)
    warning = None if from_scratch else head_warning(*checked)
    if warning:
        print(f"  ! {warning}", file=sys.stderr, flush=True)
    task = make_task(model.config.model_type, questions, tokenizer, settings.max_length)
    losses = pretrain(model, task, settings, f"pre-train {name}")
    save(model, tokenizer, folder)
    record = {"losses": losses, "questions": len(questions), "warning": warning}
    write_json(folder / "pretraining.json", record)


def pretrain_encoders(pipeline: Pipeline) -> list[Path]:
    """Continue pre-training every Transformer of the profile on train, test and external.

    Questions that occur in dev are left out: its score stays one on questions that no part of the
    run has read. Prints how the directories, which it returns, are used, and what a score means.

    Raises:
        UserError: an encoder cannot be pre-trained, or would be pre-trained into itself.
    """
    pipeline.run("prepare")
    config, layout = pipeline.config, pipeline.layout
    tables = {role: layout.table(role) for role in ("train", "test", "external", "dev")}
    frames = {role: frame for role, frame in tables.items() if frame is not None}
    held_out = [frames.pop("dev")] if "dev" in frames else []
    questions = collect(frames.values(), held_out)
    made = []
    for name in dict.fromkeys(member.encoder for member in config.members.values()):
        source = find_source(name, config.paths.pretrained)
        if not family_of(name).gives_tokens:
            print(f"{name}: no language model, left as it is")
            continue
        folder = layout.work / "pretrain" / folder_name(name)
        pretraining_step(name, source, questions, config.pretrain, folder).run()
        made.append(folder)
        users = [member for member, settings in config.members.items() if settings.encoder == name]
        print(f"{name}: bash run.sh " + " ".join(f"members.{u}.encoder={folder}" for u in users))
    if made:
        print(ALL_FOLDS_READ)
    return made


def folder_name(encoder: str) -> str:
    """Where an encoder is pre-trained to, one name for each encoder.

    "e5-small-zh" → "e5-small-zh", "hfl/rbt3" (a hub name) → "hfl--rbt3", as in the hub's cache. A
    directory gives its own name and a hash of its path, as many may have the same name.
    """
    path = Path(encoder)
    if not path.is_dir():
        return encoder.replace("/", "--")
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    return f"{path.resolve().name}-{digest[:8]}"
