"""Corpora of questions: every format and encoding, and what cannot be read."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.errors import UserError
from src.search.corpus import read_questions

QUESTIONS = ["感冒可以吃海鲜吗", "哮喘会遗传吗，要紧吗", "CT 要空腹吗"]


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "\n".join(QUESTIONS)),
        ("a.txt", "\r\n".join(QUESTIONS) + "\r\n"),
        ("noending", "\n".join(QUESTIONS)),
        ("a.csv", "question\n" + "\n".join(QUESTIONS)),
        ("a.csv", "id,Question,answer\n" + "".join(f'1,"{q}",好\n' for q in QUESTIONS)),
        ("a.csv", "text,question\n" + "".join(f'多喝水,"{q}"\n' for q in QUESTIONS)),  # answers
        ("a.jsonl", "\n".join(json.dumps({"text": "多喝水", "query": q}) for q in QUESTIONS)),
        ("a.csv", "\n".join(QUESTIONS)),  # a plain list that is called .csv
        ("a.csv", f"query1,query2,label\n{QUESTIONS[0]},{QUESTIONS[1]},1\n{QUESTIONS[2]},?,0"),
        ("a.tsv", "问题\t次数\n" + "".join(f"{q}\t1\n" for q in QUESTIONS)),
        ("a.jsonl", "\n".join(json.dumps({"question": q}) for q in QUESTIONS)),
        ("a.jsonl", "\n\n".join(json.dumps(q, ensure_ascii=False) for q in QUESTIONS)),
        ("a.json", json.dumps(QUESTIONS)),
        ("a.json", json.dumps([{"id": 1, "text": q} for q in QUESTIONS], indent=1)),
        ("a.json", "\n".join(json.dumps(q) for q in QUESTIONS)),  # JSONL that is called .json
        ("a.csv", "nr;question\n" + "".join(f"1;{q}\n" for q in QUESTIONS)),
        ("a.csv", "nr\tquestion\n" + "".join(f"1\t{q}\n" for q in QUESTIONS)),
    ],
)
def test_formats(tmp_path: Path, name: str, text: str) -> None:
    assert read_questions(write(tmp_path / name, text)).questions == QUESTIONS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "id,Frage\n" + "".join(f'1,"{q}"\n' for q in QUESTIONS)),
        ("a.jsonl", "\n".join(json.dumps({"question": "?", "Frage": q}) for q in QUESTIONS)),
    ],
)
def test_a_column_of_any_name(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path / name, text)
    assert read_questions(path, "Frage").questions == QUESTIONS
    with pytest.raises(UserError, match="Frage.*--column"):
        read_questions(path, "Antwort")


@pytest.mark.parametrize("name", ["a.txt.gz", "a.csv.gz"])
def test_compressed_files_and_half_of_one(tmp_path: Path, name: str) -> None:
    packed = gzip.compress("\n".join(QUESTIONS).encode("gb18030"))
    (tmp_path / name).write_bytes(packed)
    assert read_questions(tmp_path / name).questions == QUESTIONS
    (tmp_path / name).write_bytes(packed[:-12])
    with pytest.raises(UserError, match="cannot be read"):
        read_questions(tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_encodings(tmp_path: Path, encoding: str, name: str) -> None:
    text = "\n".join(["question", *QUESTIONS])
    questions = read_questions(write(tmp_path / name, text, encoding)).questions
    assert questions[-3:] == QUESTIONS


@given(st.lists(st.sampled_from([*QUESTIONS, "  ", "😷😷", "？！", f" {QUESTIONS[0]} "])))
def test_every_entry_is_counted_once(tmp_path_factory, entries: list[str]) -> None:
    path = write(tmp_path_factory.mktemp("corpus") / "a.txt", "\n".join([*QUESTIONS, *entries]))
    corpus = read_questions(path)
    assert corpus.questions == QUESTIONS
    assert corpus.counts.tolist() == [
        1 + sum(entry.strip() == question for entry in entries) for question in QUESTIONS
    ]
    assert corpus.repeated + corpus.wordless == len(entries)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"", "it is empty"),
        ("a.csv", b"", "it is empty"),
        ("a.csv", b"question\n", "it is empty"),
        ("a.txt", "\n \n😷\n".encode(), "none of its 3 entries"),
        ("a.csv", b"id,answer\n1,2\n", "line 1: there is no column of questions"),
        ("a.csv", b"id,question\n1,a\n2,b,c\n", "line 3: 3 fields"),
        ("a.csv", b'id,question\n1,"a\n', "line 2"),
        ("a.jsonl", b'{"question": "a"}\n{"question"\n', "line 2: this is not JSON"),
        ("a.jsonl", b'{"answer": "a"}\n', "line 1: no question here (found: answer)"),
        ("a.json", b'["a", 5]', "item 2: no question here"),
        ("a.json", b'["a", ', "this is not JSON"),
        ("a.txt.gz", b"no gzip", "cannot be read"),
        ("a.jsonl", b'{"question": 5}\n', "line 1: no question here"),
        ("a.jsonl", b'{"question": "\\ud83d"}\n', "line 1: no question here"),
        ("a.txt", "感冒".encode("utf-16")[:-1], "is not UTF-16"),
        ("a.txt", b"PK\0\1\n", "binary file"),
        ("a.txt", "发烧吃什么药\n感冒吃什么药\n".encode() + "咳嗽".encode("gb18030"), "line 3: "),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_questions(tmp_path / name)
    assert said in str(caught.value) and name in str(caught.value)


@pytest.mark.parametrize("path", ["absent.txt", "."])
def test_no_file(tmp_path: Path, path: str) -> None:
    with pytest.raises(UserError, match="no such file|is a directory"):
        read_questions(tmp_path / path)
