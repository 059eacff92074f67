"""Reading, validating and writing pair tables."""

import codecs
import csv
import io
import os
import unicodedata
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from src.data.pairs import read_pairs, write_pairs
from src.errors import UserError

HEADER = "id,category,query1,query2,label\n"
TABLE = (
    HEADER
    + "7,肺炎,肺炎会传染吗?,肺炎传不传染？,1\n"
    + '3,哮喘,"咳嗽,怎么办","他说""没事"",对吗",0\n'
)
ROWS = [
    ("7", "肺炎", "肺炎会传染吗?", "肺炎传不传染？", 1),
    ("3", "哮喘", "咳嗽,怎么办", '他说"没事",对吗', 0),
]


def read(path: Path, content: str | bytes, *, labelled: bool = True) -> list[tuple]:
    """The rows of a file with this content."""
    path = path / "pairs.csv" if path.is_dir() else path
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    frame = read_pairs(path, labelled=labelled).frame
    assert list(frame.columns) == ["id", "category", "query1", "query2", "label"]
    assert frame["label"].dtype == "int64"
    assert frame.index.equals(pd.RangeIndex(len(frame)))
    return list(frame.itertuples(index=False, name=None))


def message(path: Path, content: str | bytes, *, labelled: bool = True) -> str:
    """The error that a file with this content raises; it always names the file."""
    with pytest.raises(UserError) as caught:
        read(path, content, labelled=labelled)
    assert str(path / "pairs.csv") in str(caught.value)
    return str(caught.value)


# --- forms that are accepted


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_encodings_and_line_ends(tmp_path: Path, encoding: str, end: str) -> None:
    assert read(tmp_path, TABLE.replace("\n", end).encode(encoding)) == ROWS


@pytest.mark.parametrize(
    "bom, encoding",
    [
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        ("\ufeff".encode("gb18030"), "gb18030"),
    ],
)
def test_other_byte_order_marks(tmp_path: Path, bom: bytes, encoding: str) -> None:
    assert read(tmp_path, bom + TABLE.encode(encoding)) == ROWS


@pytest.mark.parametrize("tail", ["", "\n\n\n", "\r\n \r\n", ",,,,\n,,,,\n", "\n\u3000\n"])
def test_no_line_end_or_blank_lines_at_the_end(tmp_path: Path, tail: str) -> None:
    assert read(tmp_path, TABLE.rstrip("\n") + ("\n" + tail if tail else "")) == ROWS


def test_full_width_header_and_labels_but_questions_stay_verbatim(tmp_path: Path) -> None:
    text = "ＩＤ,Ｃａｔｅｇｏｒｙ, ｑｕｅｒｙ１ ,ＱＵＥＲＹ２,ｌａｂｅｌ\n１,Ａ, Ｂ１？ , Ｃ　,１\n２,Ａ,Ｄ,Ｅ,０\n"  # noqa: E501
    assert read(tmp_path, text) == [
        ("１", "Ａ", " Ｂ１？ ", " Ｃ　", 1),
        ("２", "Ａ", "Ｄ", "Ｅ", 0),
    ]  # noqa: E501


def test_other_names_other_order_and_extra_columns(tmp_path: Path) -> None:
    text = "note,label,question2,,question1\nx,1,乙,0,甲\ny,0,丁,1,丙\n"
    assert read(tmp_path, text) == [("0", "", "甲", "乙", 1), ("1", "", "丙", "丁", 0)]


@pytest.mark.parametrize(
    "written, label",
    [
        ("0", 0),
        ("1", 1),
        ("1.0", 1),
        ("0.0", 0),
        ("０", 0),
        (" 1 ", 1),
        ("１．０", 1),
        ("", -1),
        ("-1", -1),
        ("-1.0", -1),
        ("－１", -1),
        ("nan", -1),
        ("NaN", -1),
        ("\u3000", -1),
    ],
)
def test_labels(tmp_path: Path, written: str, label: int) -> None:
    text = HEADER + f"a,,甲,乙,{written}\nb,,丙,丁,1\n"
    assert [row[-1] for row in read(tmp_path, text, labelled=False)] == [label, 1]
    assert [row[-1] for row in read(tmp_path, text)] == ([label, 1] if label >= 0 else [1])


def test_unlabelled_rows_are_dropped_and_counted_in_training_only(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("query1,query2,label\n甲,乙,\n丙,丁,1\n戊,己,-1\n庚,辛,0\n")
    train, test = read_pairs(path, labelled=True), read_pairs(path, labelled=False)
    assert train.path == path
    assert (train.unlabelled_dropped, test.unlabelled_dropped) == (2, 0)
    assert list(train.frame["query1"]) == ["丙", "庚"] and list(train.frame["id"]) == ["0", "1"]
    assert list(test.frame["query1"]) == ["甲", "丙", "戊", "庚"]
    assert list(test.frame["label"]) == [-1, 1, -1, 0]


def test_test_file_without_labels_keeps_ids_and_order(tmp_path: Path) -> None:
    text = "id,query1,query2\n007,甲,乙\nx-1,甲,乙\n 3,丙,丁\n"
    rows = read(tmp_path, text, labelled=False)
    assert [row[0] for row in rows] == ["007", "x-1", " 3"]
    assert {row[-1] for row in rows} == {-1}


# --- what is rejected, and where the message points


@pytest.mark.parametrize(
    "text, parts",
    [
        ("", ["empty", "header"]),
        ("\n\n", ["empty"]),
        (HEADER, ["no rows"]),
        (HEADER + ",,,,\n", ["no rows"]),
        (HEADER + "0,,甲,乙,\n", ["none of its 1 rows has a label"]),
        ("0,肺炎,甲,乙,1\n", ["line 1", "no column 'query1'", "found: 0, 肺炎, 甲, 乙, 1"]),
        ("id,query1,label\n0,甲,1\n", ["line 1", "no column 'query2'"]),
        ("query1,query2\n甲,乙\n", ["line 1", "no column 'label'"]),
        ("query1,query2,question1,label\n甲,乙,丙,1\n", ["line 1", "'query1' and 'question1'"]),
        (TABLE + "4,,甲,乙,2\n", ["line 4", "column label", "'2'", "0 or 1"]),
        (TABLE + "4,,甲,乙,0.5\n", ["line 4", "column label", "'0.5'"]),
        (TABLE + "4,,甲,乙,是\n", ["line 4", "column label", "'是'"]),
        (TABLE + "4,,,乙,1\n", ["line 4", "column query1", "empty"]),
        (TABLE + "4,,甲, \u3000,1\n", ["line 4", "column query2", "empty"]),
        ("question1,question2,label\n甲,,1\n", ["line 2", "column question2", "empty"]),
        (TABLE + ",,,,\n4,,甲,乙,1\n", ["line 4", "column query1", "empty"]),
        (TABLE + "7,,甲,乙,1\n", ["line 4", "column id", "'7'", "line 2"]),
        (TABLE + " ,,甲,乙,1\n", ["line 4", "column id", "empty"]),
        (TABLE + "4,,甲,乙\n", ["line 4", "4 fields", "5"]),
        (TABLE + "4,,甲,怎么,办,1\n", ["line 4", "6 fields", "5", "double quotes"]),
        (TABLE + '4,,"甲,乙,1\n5,,丙,丁,1\n', ["line 4", "quotes"]),
        (TABLE + '4,,"甲"呢,乙,1\n', ["line 4", "quotes"]),
        (
            TABLE + f'4,,"{"咳" * 200_000}",乙,1\n',
            ["line 4", "column query1", "200,000 characters"],
        ),
    ],
)
def test_faults_are_located(tmp_path: Path, text: str, parts: list[str]) -> None:
    found = message(tmp_path, text)
    for part in parts:
        assert part in found
    assert "\n" not in found


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_numbers_count_line_breaks_inside_quotes_and_blank_lines(
    tmp_path: Path, end: str
) -> None:
    text = HEADER + '0,,"第一行\n第二行\n\n第四行",乙,1\n\n1,,甲,"丙\n丁",0\n0,,甲,乙,1\n'
    found = message(tmp_path, text.replace("\n", end))
    assert "line 9, column id" in found and "line 2" in found
    assert read(tmp_path, text.replace("\n0,,甲,乙,1\n", "\n").replace("\n", end)) == [
        ("0", "", "第一行\n第二行\n\n第四行".replace("\n", end), "乙", 1),
        ("1", "", "甲", "丙\n丁".replace("\n", end), 0),
    ]


def test_an_unclosed_quote_does_not_swallow_a_test_file(tmp_path: Path) -> None:
    text = 'query1,query2\n甲,乙\n丙,"丁\n戊,己\n庚,辛\n'
    assert "line 3" in message(tmp_path, text, labelled=False)


@pytest.mark.parametrize("word", ["nan", "NULL", " None ", "#N/A", "-", "ＮＡＮ"])
def test_words_for_nothing_are_found_by_their_lines(tmp_path: Path, word: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f"{TABLE}4,,甲,{word},1\n5,,{word},乙,0\n6,,NaN值高吗,乙,0\n", "utf-8")
    table = read_pairs(path, labelled=True)
    assert table.nothing == (4, 5) and len(table.frame) == 5


def test_a_test_file_keeps_rows_without_a_question(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("id,query1,query2\n1,甲,\n2,甲,乙\n3,\u3000,乙\n", "utf-8")
    table = read_pairs(path, labelled=False)
    assert table.frame["id"].tolist() == ["1", "2", "3"] and table.nothing == (2, 4)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators(tmp_path: Path, separator: str) -> None:
    rows = [["id", "query1", "query2", "label"], ["7", "咳嗽,怎么办", "他没事", "1"]]
    text = "\n".join(separator.join(row) for row in rows)
    assert read(tmp_path, text) == [("7", "", "咳嗽,怎么办", "他没事", 1)]


def test_bad_labels_are_an_error_in_test_files_too(tmp_path: Path) -> None:
    assert "line 4, column label" in message(tmp_path, TABLE + "4,,甲,乙,3\n", labelled=False)


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04\x14\x00\x08\x00workbook",
        TABLE.encode() + b"\0",
        TABLE.encode("utf-16-le"),
        TABLE.encode("utf-32"),
    ],
)
def test_binary_files(tmp_path: Path, content: bytes) -> None:
    assert "binary" in message(tmp_path, content)


def test_undecodable_bytes_are_located(tmp_path: Path) -> None:
    raw = TABLE.encode()
    assert "line 2" in message(tmp_path, raw.replace("传染".encode(), b"\xff\xff", 1))
    assert "line 3" in message(tmp_path, TABLE.encode("gb18030")[:-3] + b"\xff,0\n")
    assert "line 3" in message(tmp_path, TABLE.encode("utf-16")[:-1])


def test_damaged_utf8_does_not_pass_for_gb18030(tmp_path: Path) -> None:
    # Without its third byte the sentence is valid GB18030, in other characters.
    sentence = "肺炎会传染".encode()[:-1]
    sentence.decode("gb18030")
    text = b"query1,query2,label\n" + sentence + b",a,1\n"
    assert "line 2" in message(tmp_path, text) and "UTF-8" in message(tmp_path, text)


def test_missing_file_and_directory_in_its_place(tmp_path: Path) -> None:
    for path, part in [(tmp_path / "no.csv", "no such file"), (tmp_path, "directory")]:
        with pytest.raises(UserError, match=part) as caught:
            read_pairs(path, labelled=True)
        assert str(path) in str(caught.value)


# --- writing


QUESTION = st.text(
    st.one_of(
        st.sampled_from("肺炎会传染吗咳嗽,，？?\"'“”　 \n\r\t１a;0"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    ),
    min_size=1,
    max_size=20,
).filter(lambda text: text.strip())
FRAMES = st.lists(
    st.tuples(QUESTION, QUESTION | st.just(""), QUESTION, QUESTION, st.sampled_from([-1, 0, 1])),
    min_size=1,
    max_size=5,
    unique_by=lambda row: row[0],
).map(lambda rows: pd.DataFrame(rows, columns=["id", "category", "query1", "query2", "label"]))
# Very short GB18030 files can be valid UTF-8 by chance. One ordinary question rules that out.
ANCHOR = "得了支原体肺炎的孩子应该吃什么药，多久才能好起来，需要住院治疗吗"


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(frame=FRAMES)
def test_any_table_survives_the_round_trip_in_every_encoding(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    frame.loc[len(frame)] = ["\ufeffanchor", "", ANCHOR, ANCHOR, 1]
    path = tmp_path / "pairs.csv"
    write_pairs(frame, path)
    expected = list(frame.itertuples(index=False, name=None))
    text = path.read_bytes().decode("utf-8")
    for encoding in ["utf-8", "utf-8-sig", "gb18030", "utf-16"]:
        assert read(path, text.encode(encoding), labelled=False) == expected
    # Writing what was read gives the same bytes again.
    write_pairs(read_pairs(path, labelled=False).frame, path)
    assert path.read_bytes().decode("utf-8") == text


def test_written_form(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=["id", "category", "query1", "query2", "label"])
    path = tmp_path / "new" / "pairs.csv"
    write_pairs(frame[["label", "query2", "query1", "category", "id"]], path)
    assert path.read_bytes() == TABLE.encode()
    assert os.listdir(path.parent) == ["pairs.csv"]


def test_a_failed_write_keeps_the_previous_file(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(TABLE)
    frame = pd.DataFrame(ROWS, columns=["id", "category", "query1", "query2", "label"])
    frame = frame.astype({"query1": "object"})
    frame.loc[0, "query1"] = "\ud800"  # a lone surrogate has no UTF-8 form
    with pytest.raises(UnicodeEncodeError):
        write_pairs(frame, path)
    assert path.read_text() == TABLE and os.listdir(tmp_path) == ["pairs.csv"]


# --- the competition's files


def test_all_variants_give_the_same_pairs(competition: Path) -> None:
    train = read_pairs(competition / "tianchi/train.csv", labelled=True)
    dev = read_pairs(competition / "tianchi/dev.csv", labelled=True)
    assert (len(train.frame), train.frame["label"].sum()) == (8747, 3497)
    assert (len(dev.frame), dev.frame["label"].sum()) == (2002, 804)
    assert train.unlabelled_dropped == dev.unlabelled_dropped == 0
    for name, original, dropped in [
        ("train.lf.csv", train, 0),
        ("train.no-id.nan-labels.csv", train, 6),
        ("dev.no-id.csv", dev, 0),
    ]:
        variant = read_pairs(competition / "variants" / name, labelled=True)
        pd.testing.assert_frame_equal(variant.frame, original.frame)
        assert variant.unlabelled_dropped == dropped


def test_shuffled_test_file_keeps_ids_order_and_text(competition: Path) -> None:
    path = competition / "variants/test.shuffled-ids.csv"
    frame = read_pairs(path, labelled=False).frame
    plain = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    for name in ["id", "query1", "query2"]:
        assert list(frame[name]) == [row[name] for row in plain]
    # This file writes 78 of its 601 pairs with full-width punctuation where dev has ASCII.
    dev = read_pairs(competition / "tianchi/dev.csv", labelled=True).frame.set_index("id")
    dev = dev.loc[list(frame["id"])].reset_index()
    texts = ["query1", "query2"]
    assert (frame[texts] != dev[texts]).any(axis=1).sum() == 78
    normal = [part[texts].map(lambda t: unicodedata.normalize("NFKC", t)) for part in (frame, dev)]
    pd.testing.assert_frame_equal(*normal)
    assert list(frame["label"]) == list(dev["label"])


def test_the_organisers_example_and_the_external_pairs(competition: Path) -> None:
    example = read_pairs(competition / "tianchi/test.csv", labelled=False).frame
    assert list(example["label"]) == [-1] * 5
    external = read_pairs(competition / "external/chip2019.csv", labelled=True).frame
    assert len(external) == 20000 and external["category"].iloc[0] == "aids"


def test_the_competition_files_in_other_encodings(competition: Path, tmp_path: Path) -> None:
    dev = competition / "tianchi/dev.csv"
    original = list(read_pairs(dev, labelled=True).frame.itertuples(index=False, name=None))
    for encoding in ["utf-8-sig", "gb18030", "utf-16"]:
        assert read(tmp_path, dev.read_bytes().decode().encode(encoding)) == original
