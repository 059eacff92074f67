"""Search on a tiny trained model: vectors, index, nearest, mining, clusters, FAQs, commands."""

import ast
import subprocess
import sys
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sentence_transformers.util import semantic_search
from tiny_run import ROOT

from src.data.pairs import read_pairs
from src.errors import UserError
from src.models.registry import load_encoder
from src.search import Matcher, commands, encode, index, nearest
from src.search.cluster import agreement, cluster, numbers
from src.search.duplicates import labelled_groups, retrieval
from src.search.encode import average
from src.search.faq import discover
from src.search.index import build_index, open_index
from src.search.mine import mine
from src.search.threshold import best_threshold, threshold
from src.training.fold_model import load_fold_model


@pytest.fixture(scope="module")
def pairs(sample: Path):
    return read_pairs(sample / "dev.csv", labelled=True).frame.iloc[:80].reset_index(drop=True)


@pytest.fixture(scope="module")
def questions(pairs) -> list[str]:
    return labelled_groups(pairs)[0]


@pytest.fixture
def corpus(tmp_path: Path, questions: list[str]) -> Path:
    path = tmp_path / "questions.txt"
    path.write_text("\n".join(questions), "utf-8")
    return path


def unit(count: int, width: int, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal((count, width), np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def synthetic(path: Path, vectors: np.ndarray):
    """An index of questions 问题0, 问题1, … with the vectors given."""
    path.write_text("\n".join(f"问题{row}" for row in range(len(vectors))), "utf-8")

    def fill(_: list[str], out: np.ndarray) -> None:
        out[:] = vectors

    return build_index(path, vectors.shape[1], {}, fill)


# Vectors.


def test_vectors_keep_the_order_and_have_length_one(matcher: Matcher, questions, monkeypatch):
    mixed = [*questions, *questions[:5]]
    monkeypatch.setattr(encode, "CHUNK", 16)
    monkeypatch.setattr(encode, "BATCH_TOKENS", 40)
    vectors = matcher.encode(mixed)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.array_equal(vectors[-5:], vectors[:5])
    alone = np.concatenate([matcher.encode([question]) for question in mixed])
    assert np.allclose(vectors, alone, atol=1e-5)


def test_a_question_is_encoded_once(matcher: Matcher, questions, monkeypatch):
    seen = []
    embed = matcher.encoder.embed
    monkeypatch.setattr(
        matcher.encoder,
        "embed",
        lambda tokens, pooling: seen.append(len(tokens.lengths)) or embed(tokens, pooling),
    )
    matcher.encode(questions[:7] * 9)
    assert sum(seen) == 7


@pytest.mark.parametrize("missing", [None, float("nan"), 7, "\ud83d感冒"])
def test_what_is_no_text_gets_no_vector(matcher: Matcher, questions, missing):
    """A gap in a table once got the vector of another question."""
    with pytest.raises(UserError, match="Question 2 of 3 is .*, which is no text"):
        matcher.encode([questions[0], missing, questions[1]])


def test_vectors_come_from_the_mean_of_tuned_and_untuned_weights(matcher: Matcher):
    member, pretrained = matcher.chosen.member, matcher.config.paths.pretrained
    untuned = load_encoder(member.encoder, pretrained)[0].state_dict()
    tuned = load_fold_model(matcher.chosen.folder, pretrained).model.encoder.state_dict()
    for name, values in matcher.encoder.state_dict().items():
        if values.is_floating_point():
            torch.testing.assert_close(values, (untuned[name] + tuned[name]) / 2)
    changed = [name for name in tuned if not torch.equal(untuned[name], tuned[name])]
    assert len(changed) > 5  # so that the mean is neither


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_ends_of_the_mean(matcher: Matcher, share: float):
    member, pretrained = matcher.chosen.member, matcher.config.paths.pretrained
    untuned, tuned = (load_encoder(member.encoder, pretrained)[0] for _ in range(2))
    with torch.no_grad():
        for values in tuned.parameters():
            values.mul_(1.5)
    expected = (tuned if share else untuned).state_dict()
    expected = {name: values.clone() for name, values in expected.items()}
    found = average(untuned, tuned, share).state_dict()
    assert all(torch.equal(found[name], values) for name, values in expected.items())


def test_vectors_go_into_a_given_array(matcher: Matcher, questions):
    for texts in (questions, questions[:3] * 2):
        out = np.zeros((len(texts), matcher.encoder.hidden_size), np.float32)
        assert matcher.encode(texts, out) is out
        assert np.allclose(out, matcher.encode(texts))


def test_long_texts_are_cut(matcher: Matcher):
    assert np.isfinite(matcher.encode(["感冒" * 5_000, "😷", "感冒吗"])).all()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([("感冒", "发烧"), ("感冒", None)], "pair 1: its second question is None"),
        ([(float("nan"), "感冒")], "pair 0: its first question is nan"),
        ([("感冒", 5)], "pair 0: its second question is 5"),
        ([("感冒", " \u3000")], "pair 0: its second question is blank"),
        ([("感冒", "发烧", "咳嗽")], "pair 0: .*is no pair"),
        (["感冒"], "pair 0: '感冒' is no pair"),
        ([None], "pair 0: None is no pair"),
    ],
)
def test_what_is_no_pair_gets_no_score(matcher: Matcher, wrong, said: str):
    for score in (matcher.score, matcher.rerank):
        with pytest.raises(UserError, match=said):
            score(wrong)


def test_a_question_in_another_encoding_is_refused(matcher: Matcher):
    piped = "感冒".encode("gbk").decode("utf-8", "surrogateescape")
    with pytest.raises(UserError, match="PYTHONIOENCODING"):
        matcher.encode_query(piped)


def test_scores_are_the_members_own(matcher: Matcher, pairs):
    texts = list(zip(pairs["query1"], pairs["query2"], strict=True))
    pretrained = matcher.config.paths.pretrained
    for chosen, score in ((matcher.chosen, matcher.score), (matcher.chosen_cross, matcher.rerank)):
        logits = load_fold_model(chosen.folder, pretrained).predict(pairs)
        assert np.allclose(score(texts), 1 / (1 + np.exp(-logits)), atol=1e-6)
    assert len(matcher.score([])) == 0


@pytest.mark.parametrize("asked", [None, "fp32"])
def test_each_model_computes_in_its_members_precision(matcher: Matcher, monkeypatch, asked):
    seen: list[str] = []
    monkeypatch.setattr(
        "src.models.api.autocast",
        lambda device, precision: seen.append(precision) or nullcontext(),
    )

    def load(folder: Path, pretrained: Path):
        found = load_fold_model(folder, pretrained)
        found.model.precision = "bf16" if "cross" in str(folder) else "fp32"
        return found

    monkeypatch.setattr("src.search.matcher.load_fold_model", load)
    other = Matcher.of(matcher.config, asked)
    for answer in (other.score, other.rerank):
        answer([("感冒吗", "肺炎吗")])
    assert seen == ["fp32", asked or "bf16"]


def test_the_fold_with_the_lowest_loss_answers(matcher: Matcher):
    from src.files import read_json

    histories = matcher.layout.work.glob("train/siamese-fgm/fold*/history.json")
    losses = [min(epoch["valid_loss"] for epoch in read_json(path)) for path in histories]
    assert len(losses) == 2 and matcher.chosen.loss == min(losses)


def test_untrained_is_said(matcher: Matcher, tmp_path: Path):
    with pytest.raises(UserError, match="is trained.*Run first"):
        Matcher.load("tiny", f"paths.work={tmp_path}")


# Index.


def test_an_index_is_made_once_and_mapped(matcher: Matcher, corpus: Path, questions):
    first, second = open_index(corpus, matcher), open_index(corpus, matcher)
    assert first.is_new and not second.is_new
    assert isinstance(second.vectors, np.memmap)
    assert np.array_equal(second.vectors, first.vectors)
    assert np.allclose(second.vectors, matcher.encode(questions), atol=1e-6)


def test_an_index_follows_its_corpus(matcher: Matcher, corpus: Path, questions):
    open_index(corpus, matcher)
    corpus.write_text("\n".join(questions[::-1]), "utf-8")
    again = open_index(corpus, matcher)
    assert again.is_new
    assert np.allclose(again.vectors, matcher.encode(questions[::-1]), atol=1e-6)


def test_an_index_follows_its_model(corpus: Path):
    def make(model: int, value: float):
        return build_index(corpus, 2, {"weights": model}, lambda _, out: out.fill(value))

    assert make(1, 1.0).is_new and not make(1, 9.0).is_new
    other = make(2, 2.0)
    assert other.is_new and (other.vectors == 2.0).all()


def test_the_model_of_an_index_has_its_tokenizer_and_its_real_precision(matcher: Matcher):
    known = matcher.identity
    other = Matcher.of(matcher.config)
    other.bi.tokenizer.add_tokens(["海鲜"])
    assert other.identity != known and Matcher.of(matcher.config).identity == known
    plain = Matcher.of(matcher.config, precision="fp32").identity
    assert plain["bf16"] is False and Matcher.of(matcher.config, "bf16").identity["bf16"] is True


def test_a_full_disk_is_said_before_it_ends_the_process(matcher, corpus: Path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(UserError, match="disk has 0.00 GB left"):
        open_index(corpus, matcher)
    monkeypatch.undo()
    assert open_index(corpus, matcher).is_new


def test_index_and_threshold_follow_the_untuned_weights(
    matcher: Matcher, corpus: Path, monkeypatch
):
    """The mean with another untuned encoder is another model, although the tuned file is not."""
    assert 0 < threshold(matcher) <= 1 and open_index(corpus, matcher).is_new
    monkeypatch.setattr(
        "src.search.matcher.average", lambda untuned, tuned: average(untuned, tuned, 0.25)
    )
    other = Matcher.of(matcher.config)
    assert other.chosen == matcher.chosen
    assert open_index(corpus, other).is_new and not open_index(corpus, other).is_new
    monkeypatch.setattr("src.search.threshold.best_threshold", lambda *_: (0.125, 1.0))
    assert threshold(other) == 0.125


def test_a_killed_index_is_made_again(corpus: Path):
    def dies(_: list[str], out: np.ndarray) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(corpus, 2, {}, dies)
    made = build_index(corpus, 2, {}, lambda _, out: out.fill(1.0))
    assert made.is_new and (made.vectors == 1.0).all()


def test_a_foreign_folder_is_left_alone(matcher: Matcher, corpus: Path):
    folder = corpus.with_name(f"{corpus.name}.index")
    folder.mkdir()
    (folder / "thesis.doc").write_text("years of work")
    with pytest.raises(UserError, match="in the way"):
        open_index(corpus, matcher)
    assert (folder / "thesis.doc").is_file()


# Nearest.


def test_exact_search_agrees_with_the_library():
    vectors, queries = unit(500, 16), unit(7, 16, seed=1)
    scores, rows = nearest.exact_nearest(queries, vectors, 5)
    theirs = semantic_search(torch.from_numpy(queries), torch.from_numpy(vectors), top_k=5)
    assert rows.tolist() == [[hit["corpus_id"] for hit in hits] for hits in theirs]
    assert np.allclose(scores, [[hit["score"] for hit in hits] for hits in theirs], atol=1e-5)


def test_approximate_search_finds_nearly_all(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(index, "EXACT_LIMIT", 1_000)
    vectors = unit(6_000, 16)
    found = synthetic(tmp_path / "many.txt", vectors)
    assert found.cells is not None
    queries = unit(50, 16, seed=1)
    scores, rows = found.nearest(queries, 5)
    exact_scores, exact_rows = nearest.exact_nearest(queries, vectors, 5)
    shared = [len(np.intersect1d(a, b)) for a, b in zip(rows, exact_rows, strict=True)]
    assert np.mean(shared) > 0.9 * 5
    assert np.allclose(scores, np.einsum("qh,qkh->qk", queries, vectors[rows]), atol=1e-5)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_a_question_finds_itself(matcher: Matcher, corpus: Path, questions):
    hits = commands.nearest_questions(matcher, open_index(corpus, matcher), questions[3], 3, False)
    assert hits[0].question == questions[3] and hits[0].score == pytest.approx(1, abs=1e-5)
    assert matcher.search(questions[3], questions, top=3) == hits
    assert len(matcher.search(questions[3], questions[:2], top=9)) == 2


def test_reranking_orders_by_the_cross_encoder(matcher: Matcher, corpus: Path, questions):
    opened = open_index(corpus, matcher)
    hits = commands.nearest_questions(matcher, opened, "感冒能吃海鲜吗", 5, True)
    near = commands.nearest_questions(matcher, opened, "感冒能吃海鲜吗", 50, False)
    probability = matcher.rerank([("感冒能吃海鲜吗", hit.question) for hit in near])
    assert [hit.score for hit in hits] == pytest.approx(sorted(probability)[::-1][:5], abs=1e-6)


# Mining.


@pytest.mark.parametrize("top", [1, 7, 10_000])
def test_mining_is_exact(tmp_path: Path, top: int):
    vectors = unit(60, 8)
    found = mine(synthetic(tmp_path / "some.txt", vectors), top)
    pairs = [(float(vectors[i] @ vectors[j]), i, j) for i, j in combinations(range(60), 2)]
    best = sorted(pairs, reverse=True)[:top]
    assert [(i, j) for _, i, j in found] == [(i, j) for _, i, j in best]
    assert np.allclose([pair[0] for pair in found], [pair[0] for pair in best], atol=1e-6)


def test_approximate_mining_finds_planted_pairs(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(index, "EXACT_LIMIT", 1_000)
    vectors = unit(3_000, 16)
    vectors[[10, 20, 2_999]] = vectors[[1_500, 2_500, 0]]
    found = mine(synthetic(tmp_path / "many.txt", vectors), 3)
    assert sorted(pair[1:] for pair in found) == [(0, 2_999), (10, 1_500), (20, 2_500)]


def test_one_question_has_no_pairs(tmp_path: Path):
    with pytest.raises(UserError, match="this file has one"):
        mine(synthetic(tmp_path / "one.txt", unit(1, 8)), 5)


# Clusters.


def test_clusters_hold_what_is_near_their_representative():
    vectors = unit(200, 4)
    groups = cluster(vectors, 0.8)
    assert sorted(row for group in groups for row in group) == list(range(200))
    assert [len(group) for group in groups] == sorted(map(len, groups), reverse=True)
    assert len(groups[0]) > 1
    for group in groups:
        assert (vectors[group] @ vectors[group[0]] >= 0.8 - 1e-5).all()
    assert cluster(vectors[:1], 0.8) == [[0]]


def test_too_many_to_cluster(monkeypatch):
    monkeypatch.setattr("src.search.cluster.EXACT_LIMIT", 10)
    with pytest.raises(UserError, match="up to 10 different questions"):
        cluster(unit(11, 4), 0.8)


def test_agreement_counts_pairs():
    result = agreement(np.array([0, 0, 0, 1, 1]), numbers([[0, 1], [2, 3]], 5))
    assert result.precision == 1 / 2 and result.recall == 1 / 4
    assert agreement(np.array([0, 0, 1]), np.array([5, 5, 3])).adjusted_rand == 1
    assert agreement(np.array([0, 0, 1]), np.array([1, 2, 3])).precision == 1


def test_labelled_groups_follow_positive_pairs(pairs):
    questions, groups = labelled_groups(pairs)
    group_of = dict(zip(questions, groups, strict=True))
    for first, second, label in zip(pairs["query1"], pairs["query2"], pairs["label"], strict=True):
        if label == 1:
            assert group_of[first] == group_of[second]
    assert len(set(groups)) > 1


def test_spellings_of_a_question_are_one_group():
    frame = pd.DataFrame(
        {
            "query1": ["感冒吃什么？", "感冒吃什么"],
            "query2": ["肺炎吃什么", "感冒能吃什么"],
            "label": [0, 1],
        }
    )
    questions, groups = labelled_groups(frame)
    group_of = dict(zip(questions, groups, strict=True))
    assert group_of["感冒吃什么？"] == group_of["感冒吃什么"] == group_of["感冒能吃什么"]
    assert group_of["肺炎吃什么"] != group_of["感冒吃什么"]


def test_retrieval_by_hand():
    """0 finds its duplicate 1 first, 1 finds 2 before 0; 2 and 3 have no duplicate."""
    angles = np.radians([0.0, 30.0, 50.0, 120.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = retrieval(vectors, np.array([7, 7, 3, 4]))
    assert found.ranks.tolist() == [1, 2] and found.groups.tolist() == [7, 7]
    assert found.recall_at_1 == 1 / 2
    assert found.mrr == pytest.approx((1 + 1 / 2) / 2)


def test_ties_do_not_count_as_found():
    """Four equal vectors: the duplicate is no nearer than the two others."""
    vectors = np.tile(unit(1, 8), (4, 1))
    assert retrieval(vectors, np.array([7, 7, 3, 4])).ranks.tolist() == [3, 3]
    assert retrieval(vectors, np.array([7, 7, 7, 4])).ranks.tolist() == [2, 2, 2]
    assert retrieval(vectors, np.array([7, 7, 7, 7])).recall_at_1 == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_no_numbers_find_nothing(value: float):
    """0 and 1 are duplicates, and so are 2 and 3; 1 is broken."""
    vectors = np.eye(4, dtype=np.float32)
    vectors[3] = vectors[2]
    vectors[1] = value
    assert retrieval(vectors, np.array([7, 7, 5, 5])).ranks.tolist() == [3, 3, 1, 1]
    broken = retrieval(np.full((4, 4), value, np.float32), np.array([7, 7, 5, 5]))
    assert broken.ranks.tolist() == [3, 3, 3, 3]


def test_the_threshold_has_the_highest_f1():
    vectors, groups = unit(40, 3), np.random.default_rng(0).integers(0, 6, 40)
    vectors = vectors + 1.5 * unit(6, 3, seed=9)[groups]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    i, j = np.triu_indices(40, 1)
    scores, same = np.einsum("ij,ij->i", vectors[i], vectors[j]), groups[i] == groups[j]

    def f1(cut: float) -> float:
        found = scores >= cut
        return 2 * (found & same).sum() / (found.sum() + same.sum())

    cut, value = best_threshold(vectors, groups)
    assert value == pytest.approx(f1(cut - 1e-6), abs=1e-3)
    assert value == pytest.approx(max(f1(score - 1e-6) for score in scores), abs=1e-3)


def test_the_threshold_is_kept(matcher: Matcher, monkeypatch):
    chosen = threshold(matcher)
    assert 0 < chosen <= 1
    monkeypatch.setattr(Matcher, "encode", None)  # a second choice would call it
    assert threshold(matcher) == chosen


# FAQs.


def test_new_entries_are_what_was_asked_most(tmp_path: Path):
    axes = np.eye(4, dtype=np.float32)
    near = axes[1] + 0.1 * axes[2]
    known = synthetic(tmp_path / "known.txt", axes[:1])
    asked = synthetic(
        tmp_path / "asked.txt",
        np.stack([axes[0], axes[1], near / np.linalg.norm(near), axes[2], axes[3]]),
    )
    asked.corpus.counts[:] = [50, 2, 3, 9, 1]
    found = discover(known, asked, 0.9)
    assert found.answered.tolist() == [True, False, False, False, False]
    assert [entry.asked for entry in found.new] == [9, 5]  # asked once: not worth an entry
    assert found.new[0].representative == 3
    assert {found.new[1].representative, *found.new[1].examples} == {1, 2}


# Commands.


def run(arguments: list[str], monkeypatch, capsys) -> tuple[int, str, str]:
    from src.__main__ import entry

    monkeypatch.setattr(sys, "argv", ["src", *arguments])
    code = 0
    try:
        entry()
    except SystemExit as stop:
        code = stop.code
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.fixture
def settings(matcher: Matcher) -> list[str]:
    paths = matcher.config.paths
    return [
        "--profile=tiny",
        "split.folds=2",
        f"paths.work={paths.work}",
        f"paths.pretrained={paths.pretrained}",
    ]


def test_search_command(corpus: Path, questions, settings, monkeypatch, capsys):
    arguments = ["search", questions[0], "--corpus", str(corpus), "--top", "2", *settings]
    code, out, err = run(arguments, monkeypatch, capsys)
    assert code == 0 and "siamese-fgm fold" in err
    lines = out.splitlines()
    assert len(lines) == 2 and lines[0] == f"1.0000  {questions[0]}"


def test_interactive_search_answers_every_line(corpus, questions, settings, monkeypatch, capsys):
    lines = iter([questions[1], "？！", questions[2]])

    def answer() -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", answer)
    arguments = ["search", "--interactive", "--corpus", str(corpus), "--top=1", "--rerank"]
    code, out, err = run([*arguments, *settings], monkeypatch, capsys)
    assert code == 0 and len(out.splitlines()) == 2
    assert "There is no letter or digit in the question '？！'" in err


def test_bad_queries(corpus: Path, settings, monkeypatch, capsys):
    for query in (["😷"], [" "]):
        arguments = ["search", "--corpus", str(corpus), *settings[:1], *query, *settings[1:]]
        code, out, err = run(arguments, monkeypatch, capsys)
        assert code == 2 and out == "" and "error: " in err


def test_mine_command(corpus: Path, settings, monkeypatch, capsys):
    code, out, err = run(["mine", str(corpus), "--top", "4", *settings], monkeypatch, capsys)
    assert code == 0 and len(out.splitlines()) == 5
    assert "times as long" in err and "cross-encoder reads" in err


def test_cluster_command(corpus: Path, questions, settings, monkeypatch, capsys):
    code, out, err = run(["cluster", str(corpus), *settings], monkeypatch, capsys)
    assert code == 0 and len(out.splitlines()) == 1 + len(questions)
    assert "pairwise precision" in err and "adjusted Rand index" in err


def test_too_many_are_refused_before_they_are_encoded(corpus, settings, monkeypatch, capsys):
    monkeypatch.setattr("src.search.cluster.EXACT_LIMIT", 10)
    code, out, err = run(["cluster", str(corpus), *settings], monkeypatch, capsys)
    assert code == 2 and out == "" and "up to 10 different questions" in err
    assert not corpus.with_name(f"{corpus.name}.index").exists()


def test_faq_command(tmp_path: Path, corpus, questions, settings, monkeypatch, capsys):
    asked = tmp_path / "asked.txt"
    asked.write_text("\n".join([questions[0], questions[1], questions[1]]), "utf-8")
    arguments = ["faq", "--known", str(corpus), "--asked", str(asked), *settings]
    code, out, _ = run(arguments, monkeypatch, capsys)
    assert code == 0
    assert "answers 3 of 3 asked questions (100.0%), 2 of 2 different ones" in out


def test_nothing_heavy_is_imported_at_start():
    program = "import src.__main__, sys; print([m for m in ('torch', 'faiss') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def imported(path: Path) -> set[str]:
    """Full names of the modules, and of what is taken from them, that a file of src/ imports."""
    package = path.relative_to(ROOT).parent.parts
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def test_nothing_below_knows_search():
    sources = ROOT / "src"
    knowing = {
        path.relative_to(sources).parts[0]
        for path in sources.rglob("*.py")
        if any(f"{name}.".startswith("src.search.") for name in imported(path))
    }
    assert knowing == {"__main__.py", "search", "lab"}
