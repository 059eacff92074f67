"""Published checkpoints, from the hub or a directory, as directories that can be loaded safely.

Most Chinese encoders of 2019 to 2021 are published as `pytorch_model.bin` only: a pickle, which
could run code. It is read once, as tensors and nothing else (`weights_only`), and written as
safetensors into the folder of pre-trained encoders; from there on only that copy is used.
"""

import pickle
import re
import shutil
import sys
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils import logging as hub_logging
from safetensors import safe_open
from torch import Tensor
from transformers import AutoConfig, AutoModel, PretrainedConfig

from ..errors import UserError
from ..files import read_json, save_tensors, sha256, write_json

# Beside the weights: configuration, vocabulary, an index of shards.
_SMALL = ("*.json", "*.txt", "*.model")
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")  # the first that is there
_OTHERS = {
    "TensorFlow": ("*.ckpt*", "tf_model*", "*.h5"),
    "Flax": ("flax_model*", "*.msgpack"),
    "Paddle": ("*.pdparams", "model_state*"),
}
hub_logging.set_verbosity_error()  # a pattern that nothing matches is no news here

_ORIGIN = "origin.json"
_NAMES = {".gamma": ".weight", ".beta": ".bias"}  # of layer norms, as TensorFlow called them


def local_directory(name: str, pretrained: Path) -> Path:
    """The directory with safetensors weights of a model directory or hub model.

    A directory's .bin is converted once for each content, a hub model's once for each commit.

    Raises:
        UserError: neither the hub nor its cache has the model, or it has no weights that can be
            read.
    """
    directory = Path(name) if Path(name).exists() else _from_hub(name, pretrained)
    if any(directory.glob(_WEIGHTS[0])):
        return directory
    files = sorted(directory.glob(_WEIGHTS[1]))
    if not files:
        raise UserError(f"The encoder '{name}' cannot be loaded: {_what_is_there(directory)}")
    mark = _commit(directory).get("commit", sha256(files[0]))[:12]
    target = pretrained / f"{name.strip('/').replace('/', '--')[-80:]}-{mark}"
    with FileLock(pretrained / f".{target.name}.lock"):
        if not target.is_dir():
            convert(directory, target)
    return target


def _from_hub(name: str, pretrained: Path) -> Path:
    """The snapshot in the hub's cache; one process of a launch downloads, the others wait."""
    pretrained.mkdir(parents=True, exist_ok=True)
    lock = pretrained / f".{name.replace('/', '--')}.download.lock"
    try:
        with FileLock(lock):
            directory = Path(snapshot_download(name, allow_patterns=list(_SMALL)))
            for pattern in _WEIGHTS:
                if not any(directory.glob(pattern)):
                    snapshot_download(name, allow_patterns=[pattern], revision=directory.name)
                if any(directory.glob(pattern)):
                    break
            return directory
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise UserError(
            f"The encoder '{name}' is not a directory, and the hub does not give it: "
            f"{first_line(error)}\nCheck the name. Behind a firewall set HF_ENDPOINT to a mirror; "
            "without a network use members.NAME.encoder=e5-small-zh, or a directory with "
            "config.json, weights and the tokenizer's files."
        ) from error


def _what_is_there(directory: Path) -> str:
    for kind, patterns in _OTHERS.items():
        if any(found for pattern in patterns for found in directory.glob(pattern)):
            return (
                f"it has weights of {kind} only. Convert them to PyTorch with {kind}'s own tools, "
                "or take a checkpoint with model.safetensors or pytorch_model.bin."
            )
    return (
        "it has no weights. Copy model.safetensors or pytorch_model.bin of the same checkpoint "
        "into the directory."
    )


def convert(directory: Path, target: Path) -> None:
    """Write a model directory with safetensors weights from one with pytorch_model.bin.

    Names of old checkpoints are translated, heads and poolers left out, and what shares memory is
    stored apart. `target` appears whole or not at all.

    Raises:
        UserError: the file is damaged, or contains more than tensors.
    """
    state: dict[str, Tensor] = {}
    for file in _shards(directory):
        state |= read_tensors(file)
    config = read_config(directory, state)
    wanted = _parameter_names(config)
    kept = {}
    for old, tensor in state.items():
        new = next((name for name in _possible_names(old) if name in wanted), None)
        if new is not None:
            kept[new] = tensor.clone().contiguous()
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        for pattern in _SMALL:
            for file in directory.glob(pattern):
                if not file.name.endswith(".index.json"):
                    shutil.copyfile(file, partial / file.name)
        write_json(partial / "config.json", config.to_dict())
        came_from = {file.name: sha256(file) for file in _shards(directory)}
        write_json(partial / _ORIGIN, {"from": came_from} | _commit(directory))
        save_tensors(kept, partial / "model.safetensors")
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def origin(directory: Path) -> dict[str, Any]:
    """Where a directory's weights come from, so that a result can be repeated.

    Returns:
        "weights": SHA-256 by file name; "commit" of a hub model; "from": of the .bin files that
        were converted.
    """
    weights = {file.name: sha256(file) for file in sorted(directory.glob(_WEIGHTS[0]))}
    made = directory / _ORIGIN
    return {"weights": weights} | (read_json(made) if made.is_file() else _commit(directory))


def _commit(directory: Path) -> dict[str, str]:
    """The commit of a snapshot in the hub's cache."""
    return {"commit": directory.name} if directory.parent.name == "snapshots" else {}


def read_tensors(file: Path) -> dict[str, Tensor]:
    """The tensors of a .bin, by name; nothing in it is run.

    Raises:
        UserError: it is damaged, or contains more than tensors.
    """
    try:
        # Files from before 2020 are no zip archives and cannot be mapped into memory.
        content = torch.load(
            file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file)
        )
    except pickle.UnpicklingError as error:
        called = re.search(r"GLOBAL (\S+)", str(error))
        if called is None:
            raise UserError(_damaged(file, error)) from error
        raise UserError(
            f"{file} is refused: besides tensors it names {called[1]}, which opening the pickle "
            "would run. Nothing was run. Take the checkpoint from another source, if possible as "
            "safetensors."
        ) from error
    except (RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        raise UserError(_damaged(file, error)) from error
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    found = content.items() if isinstance(content, dict) else ()
    return {name: tensor for name, tensor in found if isinstance(tensor, Tensor)}


def read_config(directory: Path, names: Collection[str]) -> PretrainedConfig:
    """The configuration; that of BERT where it says so wrongly, or does not say.

    The Chinese RoBERTa-wwm checkpoints are BERT models. Some copies of their config.json say
    `roberta`, others come from a time when there was no `model_type`.

    Args:
        names: of the weights, which tell.

    Raises:
        UserError: it does not say which model this is, and the weights are not BERT's.
        ValueError: it is no JSON, or the model is unknown.
    """
    try:
        content = read_json(directory / "config.json")
    except ValueError as error:
        raise ValueError(f"config.json is not valid JSON ({error})") from error
    declared = content.get("model_type")
    # Within a model that is named in front, BERT's layers are `bert.`, RoBERTa's `roberta.`.
    in_front = {name.partition(".")[0] for name in names if ".encoder.layer." in name}
    if "bert" in in_front and declared in (None, "roberta", "xlm-roberta"):
        content["model_type"] = "bert"
    elif declared is None and any(name.startswith("encoder.layer.") for name in names):
        content["model_type"] = "bert"
    elif declared is None:
        raise UserError(
            f"{directory / 'config.json'} does not say which model this is. Add "
            '"model_type": "bert" (or roberta, electra, …).'
        )
    if content["model_type"] != declared:
        said = f"says {declared}" if declared else "names no model"
        print(f"── {directory.name}: config.json {said}; loaded as bert", file=sys.stderr)
    return AutoConfig.for_model(**content)


def weight_names(directory: Path) -> list[str]:
    """The names of all tensors in a directory's safetensors files."""
    names: list[str] = []
    for file in sorted(directory.glob(_WEIGHTS[0])):
        with safe_open(file, framework="pt") as tensors:
            names += tensors.keys()
    return names


def _shards(directory: Path) -> list[Path]:
    index = directory / "pytorch_model.bin.index.json"
    if not index.is_file():
        return sorted(directory.glob(_WEIGHTS[1]))
    files = sorted({directory / file for file in read_json(index)["weight_map"].values()})
    for file in files:
        if not file.is_file():
            raise UserError(f"{index} names {file.name}, which is not there. Download it again.")
    return files


def _parameter_names(config: PretrainedConfig) -> set[str]:
    with torch.device("meta"):
        return set(AutoModel.from_config(config).state_dict())


def _possible_names(old: str) -> Iterator[str]:
    """What a tensor can be called today, without the name of the model in front."""
    new = old.removeprefix("module.")
    for ending, today in _NAMES.items():
        new = new.removesuffix(ending) + today if new.endswith(ending) else new
    yield new
    yield new.partition(".")[2]


def _damaged(file: Path, error: Exception) -> str:
    return (
        f"{file} cannot be read ({first_line(error)}). It is damaged or not wholly downloaded: "
        "remove it and download it again."
    )


def first_line(error: Exception) -> str:
    """The first line of an error's text, or its kind."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
