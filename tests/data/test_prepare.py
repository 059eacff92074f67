"""What is refused, and what is only said, when the files of a run are read."""

from dataclasses import replace
from pathlib import Path

import pytest

from src.data.prepare import write_tables
from src.data.sources import Sources
from src.errors import UserError
from src.files import read_json

HEADER = "id,query1,query2,label\n"


def sources(folder: Path, **tables: list[tuple[str, str, int]]) -> Sources:
    """A run's files with these rows."""
    found = Sources(train=folder / "train.csv", dev=None, test=None, external=None, is_sample=False)
    for role, rows in tables.items():
        lines = (f"{number},{a},{b},{label}\n" for number, (a, b, label) in enumerate(rows))
        (folder / f"{role}.csv").write_text(HEADER + "".join(lines), "utf-8")
        found = replace(found, **{role: folder / f"{role}.csv"})
    return found


def pairs(count: int, label: int | None = None) -> list[tuple[str, str, int]]:
    return [(f"问{n}", f"答{n}", n % 2 if label is None else label) for n in range(count)]


@pytest.mark.parametrize("label", [0, 1])
def test_training_with_one_label_is_refused(tmp_path: Path, label: int) -> None:
    with pytest.raises(UserError, match=f"train.csv: all 6 labels are {label}"):
        write_tables(sources(tmp_path, train=pairs(6, label)), "holdout", tmp_path / "out")
    assert not list(tmp_path.glob("out/*.csv"))


def test_a_few_words_for_nothing_are_named_and_many_refused(tmp_path: Path, capsys) -> None:
    rows = pairs(200)
    rows[7] = ("问7", "nan", 1)
    write_tables(sources(tmp_path, train=rows, test=rows[5:9]), "holdout", tmp_path / "out")
    said = capsys.readouterr().err
    assert "train.csv: on 1 line(s)" in said and "(line 9)" in said
    assert "test.csv: on 1 line(s)" in said and "decided as different" in said
    rows[9:12] = [(a, "-", label) for a, _, label in rows[9:12]]
    with pytest.raises(UserError, match=r"on 4 line\(s\).*9, 11, 12, 13.*2% of the file"):
        write_tables(sources(tmp_path, train=rows), "holdout", tmp_path / "out")


def test_pairs_with_both_labels_are_written_down(tmp_path: Path) -> None:
    rows = [*pairs(4), ("答1", "问1", 0)]
    write_tables(sources(tmp_path, train=rows), "holdout", tmp_path / "out")
    (found,) = read_json(tmp_path / "out" / "data.json")["both_labels"]
    assert found == {"query1": "问1", "query2": "答1", "same": "1", "different": "4"}
