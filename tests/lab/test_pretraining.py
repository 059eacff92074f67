"""Pre-training: whole words, sentence order, permutations, and heads that are not worth much."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_run import cut_sample, settings
from transformers import AutoModel

from src.config import MemberConfig, PretrainConfig, TrainingConfig, load_config
from src.data.entities import words
from src.data.pairs import read_pairs, write_pairs
from src.errors import UserError
from src.files import sha256
from src.lab.pretraining.language_model import head_warning, load
from src.lab.pretraining.pretrain import folder_name, pretrain_encoders, pretraining_step
from src.lab.pretraining.pretrain_loop import length_batches
from src.lab.pretraining.questions import collect
from src.lab.pretraining.tasks import (
    IGNORED,
    MaskedWords,
    Permutation,
    make_task,
    mean_cross_entropy,
)
from src.lab.pretraining.whole_words import spread_offsets, two_parts
from src.lab.studies.on_backbone import character_tokenizer, configs, write_random
from src.models.registry import find_source, load_encoder
from src.pipeline import Pipeline
from src.training.fold_model import FoldFiles, load_fold_model, train_fold_model

QUESTIONS = ["支气管炎怎么治疗", "我咳嗽三天了，是肺炎吗？", "感冒发烧怎么办", "哮喘会传染吗"] * 4
FAMILIES = ("BERT", "ALBERT", "XLNet")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A pre-trained model directory of each architecture."""
    root = tmp_path_factory.mktemp("backbones")
    made = {}
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr("src.lab.studies.on_backbone.WIDTH", 96)
        smaller.setattr("src.lab.studies.on_backbone.LAYERS", 2)
        shapes = configs(len(character_tokenizer(QUESTIONS)))
    for family, config in shapes.items():
        write_random(config, QUESTIONS, root / "random" / family)
        plan = PretrainConfig(epochs=5, batch=16, learning_rate=2e-3, precision="fp32")
        step = pretraining_step(
            family, str(root / "random" / family), 6 * QUESTIONS, plan, root / family
        )
        step.run()
        assert not step.run()  # nothing is done twice
        made[family] = step.folder
    return made


def test_offsets_have_a_gap_before_every_word():
    text = "支气管炎怎么治疗"
    assert words(text) == ("支气管炎", "怎么", "治疗")
    spread = spread_offsets(text, [(i, i + 1) for i in range(8)])
    gaps = [i for i in range(1, 8) if spread[i][0] != spread[i - 1][1]]
    assert gaps == [4, 6]


def test_words_are_masked_whole():
    """Of 支气管炎 all four characters are masked, or none."""
    tokenizer = character_tokenizer(QUESTIONS)
    task = MaskedWords(["支气管炎怎么治疗"], tokenizer, 64)
    torch.manual_seed(0)
    seen = set()
    for _ in range(60):
        masked = task.collator([dict(task.readings[0][0])])["labels"][0, 1:-1] != IGNORED
        for start, end in ((0, 4), (4, 6), (6, 8)):
            assert masked[start:end].all() or not masked[start:end].any()
            seen.add((start, bool(masked[start])))
    assert len(seen) == 6  # every word was masked some time, and spared some time


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("我咳嗽三天了，是肺炎吗？", ("我咳嗽三天了，", "是肺炎吗？")),
        ("肺炎怎么治疗？", None),
        ("啊，肺炎", ("啊，", "肺炎")),
    ],
)
def test_two_parts(text: str, parts):
    assert two_parts(text) == parts


def test_order_is_asked_only_of_two_parts():
    task = MaskedWords(QUESTIONS[:2], character_tokenizer(QUESTIONS), 64, order=True)
    assert [len(readings) for readings in task.readings] == [1, 2]
    first, second = (reading["input_ids"] for reading in task.readings[1])
    assert sorted(first) == sorted(second) and first != second


def test_permutation_lengths_are_even():
    task = Permutation(QUESTIONS, character_tokenizer(QUESTIONS), 64)
    assert (task.lengths % 2 == 0).all()


def test_what_makes_a_length_even_is_not_read(folders: dict[str, Path]):
    model, tokenizer, _ = load(str(folders["XLNet"]), 0.0)
    task = Permutation(["感冒能吃海鲜", "感冒能吃海鲜吗"], tokenizer, 64)
    assert [len(ids) - np.count_nonzero(ids) for ids in task.ids] in ([1, 0], [0, 1])
    model.eval()

    def losses() -> list[float]:
        torch.manual_seed(0)
        with torch.inference_mode():
            return [task.loss(model, np.array([row]), None).item() for row in (0, 1) * 4]

    before = losses()
    embeddings = model.get_input_embeddings()
    hook = embeddings.register_forward_hook(
        lambda _, ids, vectors: vectors + 5.0 * (ids[0] == task.pad)[..., None]
    )
    assert losses() == before
    hook.remove()


def test_nothing_to_predict_is_no_loss():
    assert mean_cross_entropy(torch.zeros(1, 3, 5), torch.full((1, 3), IGNORED)).item() == 0.0


def test_batches_are_of_one_length_and_complete():
    lengths = np.array([3, 5, 3, 5, 5, 7])
    batches = length_batches(lengths, 2, np.random.default_rng(0))
    assert sorted(np.concatenate(batches)) == list(range(6))
    assert all(len(set(lengths[rows])) == 1 and len(rows) <= 2 for rows in batches)


def test_held_out_questions_are_not_read():
    frame = pd.DataFrame({"query1": ["肺炎吗？", "感冒"], "query2": ["咳嗽", "肺炎吗？"]})
    held_out = pd.DataFrame({"query1": ["肺炎吗"], "query2": ["x"]})
    assert collect([frame, frame]) == ["肺炎吗？", "咳嗽", "感冒"]
    assert collect([frame], [held_out]) == ["咳嗽", "感冒"]


@pytest.mark.parametrize("family", FAMILIES)
def test_pretraining_lowers_the_loss(folders: dict[str, Path], family: str):
    record = json.loads((folders[family] / "pretraining.json").read_text())
    assert record["losses"][-1] < record["losses"][0]


@pytest.mark.parametrize("architecture", ["siamese", "cross"])
@pytest.mark.parametrize("family", FAMILIES)
def test_loads_trains_saves_and_reloads(
    folders: dict[str, Path], family: str, architecture: str, sample: Path, tmp_path: Path
):
    """The same loader for all: what a model predicts is what it predicts when loaded again."""
    frame = read_pairs(sample / "train.csv", labelled=True).frame.iloc[:48]
    member = MemberConfig(
        architecture=architecture,
        encoder=str(folders[family]),
        training=TrainingConfig(epochs=1, batch_pairs=16, precision="fp32"),
    )
    files = FoldFiles(tmp_path / "part.csv", tmp_path / "table.csv", tmp_path / "folds.npy", 0)
    write_pairs(frame.iloc[:32], files.part)
    write_pairs(frame.iloc[32:], files.table)
    np.save(files.folds, np.zeros(16, np.int64))
    train_fold_model(member, files, 0.5, tmp_path, None, tmp_path)
    network = load_fold_model(tmp_path, tmp_path)
    written = np.load(tmp_path / "oof.npy")
    assert network.predict(files.own_rows()) == pytest.approx(written, abs=1e-5)
    assert type(network.model.encoder.backbone).__name__.startswith(
        {"ALBERT": "Albert", "XLNet": "XLNet", "BERT": "Bert"}[family]
    )


def test_albert_shares_layers_and_factorises():
    sizes = {
        family: sum(p.numel() for p in AutoModel.from_config(config).parameters())
        for family, config in configs(1000).items()
    }
    assert sizes["ALBERT"] < sizes["BERT"] / 2


def test_heads_that_are_missing_or_random_are_named(folders: dict[str, Path], pretrained: Path):
    model, tokenizer, missing = load(folders["BERT"], 0.0)
    assert missing == []
    assert head_warning("trained", missing, model, tokenizer, QUESTIONS) is None
    with torch.no_grad():
        model.cls.predictions.transform.dense.weight.normal_(std=0.02)
        model.cls.predictions.transform.dense.bias.zero_()
        model.cls.predictions.bias.zero_()
    assert "looks random" in head_warning("random", missing, model, tokenizer, QUESTIONS)
    model, tokenizer, missing = load(find_source("tiny", pretrained), 0.0)  # has no head at all
    assert "no masked-LM head" in head_warning("tiny", missing, model, tokenizer, QUESTIONS)
    assert tokenizer.mask_token and len(tokenizer) <= model.config.vocab_size


def test_a_task_for_each_architecture():
    """BERT masks words, ALBERT also asks for the order of two parts, XLNet permutes."""
    tasks = [
        make_task(name, QUESTIONS[1:2], character_tokenizer(QUESTIONS), 64)
        for name in ("bert", "albert", "xlnet")
    ]
    assert [type(task) for task in tasks] == [MaskedWords, MaskedWords, Permutation]
    assert [len(task.readings[0]) for task in tasks[:2]] == [1, 2]


def test_the_pretrain_command_makes_an_encoder_for_members(
    sample: Path, pretrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """It says how to use the directory, reads no question of dev, and the loader takes it."""
    data = cut_sample(sample, tmp_path / "data", train=60, other=20)
    known = read_pairs(data / "train.csv", labelled=True).frame.at[0, "query1"]
    dev = read_pairs(data / "dev.csv", labelled=True).frame
    dev.at[0, "query1"] = known
    write_pairs(dev, data / "dev.csv")
    overrides = [*settings(tmp_path, pretrained), "pretrain.epochs=1", "pretrain.precision=fp32"]
    pipeline = Pipeline(load_config("tiny", overrides))
    (folder,) = pretrain_encoders(pipeline)
    assert folder == pipeline.layout.work / "pretrain" / "tiny"
    said = capsys.readouterr().out
    assert f"members.siamese-fgm.encoder={folder}" in said and "of all folds" in said
    encoder, tokenizer = load_encoder(str(folder), pretrained)
    assert tokenizer.mask_token_id is not None
    assert len(tokenizer) <= encoder.backbone.config.vocab_size
    original, _ = load_encoder("tiny", pretrained)
    rows = min(len(e.word_embeddings.weight) for e in (encoder, original))
    moved = (encoder.word_embeddings.weight[:rows] != original.word_embeddings.weight[:rows]).any()
    assert moved
    tables = {role: pipeline.layout.table(role) for role in ("train", "test", "dev")}
    unlabelled = [tables["train"], tables["test"]]
    read = collect(unlabelled, [tables["dev"]])
    assert known not in read and known in collect(unlabelled)
    record = json.loads((folder / "pretraining.json").read_text(encoding="utf-8"))
    assert record["questions"] == len(read) and "no masked-LM head" in record["warning"]

    # Further pre-training of the result goes to a place of its own.
    before = sha256(folder / "model.safetensors")
    overrides += [f"members.{name}.encoder={folder}" for name in ("siamese-fgm", "cross-pgd")]
    (further,) = pretrain_encoders(Pipeline(load_config("tiny", overrides)))
    assert sha256(folder / "model.safetensors") == before
    assert further != folder and (further / "model.safetensors").is_file()


def test_an_encoder_is_not_pretrained_into_itself(folders: dict[str, Path], tmp_path: Path):
    source = folders["BERT"]
    before = sha256(source / "model.safetensors")
    link = tmp_path / "link"
    link.symlink_to(source)
    for name in (str(source), str(link)):
        with pytest.raises(UserError, match="into itself.*paths.work"):
            pretraining_step("BERT", name, QUESTIONS, PretrainConfig(), source).run()
    assert sha256(source / "model.safetensors") == before


def test_every_encoder_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for parent in ("a", "b"):
        (tmp_path / parent / "bert").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    encoders = ["bert", "hfl/bert", "other/bert", "a/bert", "b/bert"]
    names = [folder_name(encoder) for encoder in encoders]
    assert len(set(names)) == len(encoders) and not any("/" in name for name in names)
    assert names[0] == "bert"
    assert folder_name(str(tmp_path / "a" / "bert")) == names[3]


def test_the_seed_governs_what_the_checkpoint_lacks(pretrained: Path, tmp_path: Path):
    """The tiny encoder has neither a head nor a mask token."""
    source = find_source("tiny", pretrained)
    hashes = []
    for number, seed in enumerate((1, 1, 2)):
        torch.manual_seed(100 + number)
        plan = PretrainConfig(epochs=1, seed=seed, precision="fp32", learning_rate=1e-9)
        step = pretraining_step("tiny", source, QUESTIONS, plan, tmp_path / str(number))
        step.run()
        hashes.append(sha256(step.folder / "model.safetensors"))
    assert hashes[0] == hashes[1] != hashes[2]
