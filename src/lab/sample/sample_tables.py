"""Which split asks what, and the three tables that come of it."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from .composer import Pair, SplitWriter
from .concepts import Concept, Content

SEED = 231776
ROWS_PER_DISEASE = {"train": 150, "dev": 38, "test": 30}
# Dev and test get a larger share of the concepts than of the rows: a split's negatives come from
# its own concepts, and few concepts would leave few neighbours to confuse a question with.
CONCEPT_SHARE = {"train": 0.6, "dev": 0.2, "test": 0.2}
# The competition's dev file repeats some training questions; so does ours.
SHARED_DEV_PAIRS = 6


def assign_splits(content: Content, rng: random.Random) -> dict[Concept, str]:
    """Give every concept to one split; the hidden diseases' own concepts go to test."""
    splits, shares = list(CONCEPT_SHARE), list(CONCEPT_SHARE.values())
    split_of_family: dict[tuple[str, str], str] = {}
    split_of: dict[Concept, str] = {}
    for disease in content.visible + content.hidden:
        for concept in content.concepts(disease):
            # A family is all that one intent and its negation ask about one disease or drug
            # (the first slot); it stays together, or dev would have few hard negatives.
            family = (concept.intent.negates or concept.intent.name, concept.values[0])
            if family not in split_of_family:
                hidden = disease in content.hidden
                split_of_family[family] = "test" if hidden else rng.choices(splits, shares)[0]
            split_of[concept] = split_of_family[family]
    return split_of


def build(content: Content, seed: int = SEED) -> dict[str, list[Pair]]:
    """The pairs of train, dev and test."""
    rng = random.Random(seed)
    split_of = assign_splits(content, rng)
    tables: dict[str, list[Pair]] = {}
    for split, rows in ROWS_PER_DISEASE.items():
        diseases = content.visible + (content.hidden if split == "test" else [])
        concepts = {
            disease: [c for c in content.concepts(disease) if split_of[c] == split]
            for disease in diseases
        }
        writer = SplitWriter(content, concepts, rng)
        tables[split] = [pair for disease in diseases for pair in writer.pairs(disease, rows)]
    _share_questions(tables["train"], tables["dev"], rng)
    return tables


def _share_questions(train: list[Pair], dev: list[Pair], rng: random.Random) -> None:
    """Let a few unrelated dev negatives quote a training question of their category."""
    unrelated = [i for i, pair in enumerate(dev) if pair.kind == "other_topic"]
    for i in rng.sample(unrelated, SHARED_DEV_PAIRS):
        # Still a negative: no concept is in both splits.
        quoted = rng.choice([pair.query1 for pair in train if pair.category == dev[i].category])
        dev[i] = replace(dev[i], query2=quoted)


def write_tables(folder: Path) -> Iterator[str]:
    """Write train.csv, dev.csv and test.csv in the competition's format; a line for each."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in build(Content()).items():
        table = pd.DataFrame(pairs)
        table["label"] = -1 if split == "test" else (table.pop("kind") == "same").astype(int)
        columns = ["category", "query1", "query2", "label"]
        path = folder / f"{split}.csv"
        table.to_csv(path, columns=columns, index_label="id", lineterminator="\n")
        yield f"{split}: {len(table)} pairs"
