"""The committed sample data: reproducible, balanced, consistent, hard enough, and our own."""

import os
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

from src.__main__ import main
from src.lab.sample.concepts import INTENTS, Content
from src.lab.sample.sample_tables import build

SPLITS = ["train", "dev", "test"]


@pytest.fixture(scope="module")
def content():
    return Content()


@pytest.fixture(scope="module")
def built(content):
    return build(content)


@pytest.fixture(scope="module")
def tables():
    return {split: pd.read_csv(INTENTS.parent / f"{split}.csv") for split in SPLITS}


def questions(table: pd.DataFrame) -> set[str]:
    return set(table.query1) | set(table.query2)


def unordered_pairs(table: pd.DataFrame) -> list[frozenset[str]]:
    return [frozenset(pair) for pair in zip(table.query1, table.query2, strict=True)]


def words_only(question: str) -> str:
    return re.sub(r"[\W_]", "", question)


def test_regenerating_gives_the_committed_bytes(tmp_path):
    result = CliRunner().invoke(main, ["sample", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    for split in SPLITS:
        name = f"{split}.csv"
        assert (tmp_path / name).read_bytes() == (INTENTS.parent / name).read_bytes()


def test_format_and_sizes(tables):
    for split, rows in {"train": 1200, "dev": 304, "test": 300}.items():
        table = tables[split]
        assert list(table.columns) == ["id", "category", "query1", "query2", "label"]
        assert list(table.id) == list(range(rows))
        assert not table.isna().any(axis=None)
        lengths = [len(question) for question in questions(table)]
        assert 5 <= min(lengths) and max(lengths) <= 40


def test_labels_are_balanced_and_test_has_none(tables):
    assert 0.37 <= tables["train"].label.mean() <= 0.43
    assert 0.37 <= tables["dev"].label.mean() <= 0.43
    assert set(tables["test"].label) == {-1}


def test_written_rows_are_the_built_pairs(built, tables):
    for split in SPLITS:
        rows = [(pair.category, pair.query1, pair.query2) for pair in built[split]]
        columns = ["category", "query1", "query2"]
        assert rows == list(tables[split][columns].itertuples(index=False, name=None))


def test_intents_are_many_and_variously_phrased(content):
    assert len(content.intents) >= 50
    for intent in content.intents:
        assert len(set(intent.phrasings)) == len(intent.phrasings) >= 6, intent.name
    phrasings = Counter(words_only(text) for intent in content.intents for text in intent.phrasings)
    assert max(phrasings.values()) == 1


def test_negations_name_an_intent_with_the_same_slots(content):
    by_name = {intent.name: intent for intent in content.intents}
    assert len(by_name) == len(content.intents)
    for intent in content.intents:
        if intent.negates:
            negated = by_name[intent.negates]
            assert intent.slots == negated.slots
            assert intent.diseases == negated.diseases
            assert intent.numbers == negated.numbers


@pytest.mark.parametrize("split", ["train", "dev"])
def test_every_kind_of_hard_negative_occurs(built, split):
    kinds = Counter(pair.kind for pair in built[split])
    for kind in [
        "other_intent",
        "other_disease",
        "other_drug",
        "other_number",
        "other_group",
        "negation",
    ]:
        assert kinds[kind] >= 5, kind


def test_writing_varies_as_patients_vary(tables):
    asked = [question for table in tables.values() for question in questions(table)]
    for ending in ["？", "?"]:
        assert sum(question.endswith(ending) for question in asked) > len(asked) / 20
    assert sum(question[-1] not in "？?" for question in asked) > len(asked) / 5
    for comma in "，,":
        assert sum(comma in question for question in asked) > len(asked) / 20


def test_no_pair_twice(tables):
    pairs = [pair for table in tables.values() for pair in unordered_pairs(table)]
    assert len(set(pairs)) == len(pairs)
    assert all(len(pair) == 2 for pair in pairs)


def test_no_contradiction_even_through_other_pairs(built):
    parent: dict[str, str] = {}

    def root(question: str) -> str:
        while question in parent:
            question = parent[question]
        return question

    pairs = [pair for split in SPLITS for pair in built[split]]
    for pair in pairs:
        one, other = root(pair.query1), root(pair.query2)
        if pair.kind == "same" and one != other:
            parent[one] = other
    assert not [p for p in pairs if p.kind != "same" and root(p.query1) == root(p.query2)]


def test_splits_share_a_handful_of_questions_only(tables):
    train, dev, test = (questions(tables[split]) for split in SPLITS)
    assert 1 <= len(train & dev) <= 10
    assert not test & (train | dev)


def test_hidden_diseases_occur_in_test_only(content, tables):
    assert content.hidden == ["肺结核", "支气管炎"]
    assert set(tables["test"].category) == set(content.visible + content.hidden)
    for split in ["train", "dev"]:
        assert set(tables[split].category) == set(content.visible)
        text = "".join(questions(tables[split]))
        assert not [disease for disease in content.hidden if disease in text]


def test_shared_characters_do_not_give_the_answer_away(tables):
    def overlaps(table: pd.DataFrame) -> list[list[float]]:
        rows = []
        for one, other in zip(table.query1, table.query2, strict=True):
            row = []
            for n in (1, 2, 3):
                grams = [
                    {text[i : i + n] for i in range(len(text) - n + 1)} for text in (one, other)
                ]
                row.append(len(grams[0] & grams[1]) / len(grams[0] | grams[1]))
            rows.append(row)
        return rows

    train, dev = tables["train"], tables["dev"]
    model = LogisticRegression(C=10).fit(overlaps(train), train.label)
    assert model.score(overlaps(dev), dev.label) < 0.8


@pytest.mark.skipif("TIANCHI_DATA" not in os.environ, reason="TIANCHI_DATA is not set")
def test_no_sentence_of_the_competition(tables):
    files = sorted(Path(os.environ["TIANCHI_DATA"]).rglob("*.csv"))
    theirs = set()
    for file in files:
        table = pd.read_csv(file)
        if {"query1", "query2"} <= set(table.columns):
            theirs |= {words_only(str(question)) for question in questions(table)}
    assert theirs, "TIANCHI_DATA holds no question pairs"
    for split in SPLITS:
        assert not {words_only(question) for question in questions(tables[split])} & theirs
