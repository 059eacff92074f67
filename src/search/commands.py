"""What the commands print: results on standard output, how they came about on standard error.

sentence-transformers takes seconds to import and a search does not need it, so the commands that do
import their parts themselves.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..config import Config
from ..data.pairs import csv_text
from ..errors import UserError
from .corpus import read_questions
from .index import Index, open_index
from .matcher import Hit, Matcher

_CANDIDATES = 50  # passed to the cross-encoder
_RATE_PAIRS = 256  # on which the cross-encoder's speed is measured


def search(
    config: Config,
    query: str | None,
    corpus: Path,
    column: str | None,
    top: int,
    rerank: bool,
    interactive: bool,
) -> None:
    """Print the questions nearest to one query, or to each line of standard input."""
    if not interactive and query is None:
        raise UserError("Give a question to look for, or --interactive.")
    matcher, index = _open(config, corpus, column)
    if rerank:
        _say(f"reranked by {matcher.chosen_cross}")
    if query is not None:
        _print_hits(nearest_questions(matcher, index, query, top, rerank))
    if not interactive:
        return
    for line in _prompt():
        try:
            started = time.perf_counter()
            hits = nearest_questions(matcher, index, line, top, rerank)
            _print_hits(hits)
            _say(f"{1000 * (time.perf_counter() - started):.0f} ms")
        except UserError as error:
            _say(str(error))


def nearest_questions(
    matcher: Matcher, index: Index, query: str, top: int, rerank: bool
) -> list[Hit]:
    """The `top` questions of an index, by cosine or, reranked, by the cross-encoder."""
    wanted = max(top, _CANDIDATES) if rerank else top
    scores, rows = index.nearest(matcher.encode_query(query), wanted)
    found = [(int(r), float(s)) for r, s in zip(rows[0], scores[0], strict=True) if r >= 0]
    questions = index.corpus.questions
    if rerank:
        probabilities = matcher.rerank([(query.strip(), questions[row]) for row, _ in found])
        order = np.argsort(-probabilities, kind="stable")[:top]
        found = [(found[i][0], float(probabilities[i])) for i in order]
    return [Hit(row, questions[row], score) for row, score in found]


def mine(config: Config, corpus: Path, column: str | None, top: int) -> None:
    """Print the most similar pairs, and what a cross-encoder would have taken for all of them."""
    from .mine import mine as mine_pairs

    matcher, index = _open(config, corpus, column)
    started = time.perf_counter()
    pairs = mine_pairs(index, top)
    searching = time.perf_counter() - started
    questions = index.corpus.questions
    print(csv_text([("cosine", "query1", "query2")]), end="")
    for score, first, second in pairs:
        print(csv_text([(f"{score:.4f}", questions[first], questions[second])]), end="")
    for line in timing(matcher, index, searching):
        _say(line)


def timing(matcher: Matcher, index: Index, searching: float) -> Iterable[str]:
    """Lines on the time that mining took and that a cross-encoder would take, measured now."""
    count = len(index)
    pairs = count * (count - 1) // 2
    cached = "" if index.is_new else " when the index was made"
    total = index.encode_seconds + searching
    yield (
        f"{count:,} questions encoded in {index.encode_seconds:.1f} s{cached}, {pairs:,} pairs "
        f"searched in {searching:.2f} s: {total:.1f} s"
    )
    try:
        rate = cross_encoder_rate(matcher, index)
    except UserError as error:
        yield f"No cross-encoder to compare with: {error}"
        return
    yield (
        f"The cross-encoder reads {rate:.0f} pairs a second here, in both orders: {pairs:,} pairs "
        f"would take {pairs / rate / 3600:,.1f} hours, {pairs / rate / total:,.0f} times as long."
    )


def cross_encoder_rate(matcher: Matcher, index: Index) -> float:
    """Pairs a second that the cross-encoder decides, measured on random pairs of the corpus."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(index), (_RATE_PAIRS, 2))
    questions = index.corpus.questions
    pairs = [(questions[first], questions[second]) for first, second in rows]
    matcher.rerank(pairs[:32])  # loading and warming up do not count
    started = time.perf_counter()
    matcher.rerank(pairs)
    return len(pairs) / (time.perf_counter() - started)


def clusters(config: Config, corpus: Path, column: str | None) -> None:
    """Print every question with its group and the group's representative, largest first."""
    from .cluster import cluster, refuse_too_many
    from .threshold import threshold

    refuse_too_many(len(read_questions(corpus, column).questions))
    matcher, index = _open(config, corpus, column)
    cut = threshold(matcher)
    groups = cluster(index.vectors, cut)
    questions, counts = index.corpus.questions, index.corpus.counts
    rows = [
        (number, len(group), questions[group[0]], questions[row], counts[row])
        for number, group in enumerate(groups, start=1)
        for row in group
    ]
    print(csv_text([("group", "size", "representative", "question", "times"), *rows]), end="")
    several = [group for group in groups if len(group) > 1]
    _say(
        f"{len(questions):,} questions: {sum(map(len, several)):,} in {len(several):,} groups, "
        f"{len(groups) - len(several):,} alone; cosine of at least {cut:.3f} to the representative"
    )
    measured = dev_agreement(matcher, cut)
    if measured:
        _say(measured)


def dev_agreement(matcher: Matcher, cut: float) -> str:
    """How well clusters of dev's questions agree with its labels; "" where there is no dev."""
    from .cluster import agreement, cluster, numbers
    from .duplicates import labelled_groups

    frame = matcher.layout.table("dev")
    if frame is None:
        return ""
    questions, true = labelled_groups(frame)
    vectors = matcher.encode(questions, progress="dev questions")
    result = agreement(true, numbers(cluster(vectors, cut), len(questions)))
    return (
        f"on dev's {len(questions):,} questions: pairwise precision {result.precision:.3f}, recall "
        f"{result.recall:.3f}, adjusted Rand index {result.adjusted_rand:.3f} against the "
        "components of pairs labelled as the same"
    )


def faq(config: Config, known_path: Path, asked_path: Path, top: int) -> None:
    """Print what an FAQ lacks, the most asked first."""
    from .faq import discover
    from .threshold import threshold

    matcher = _matcher(config)
    known, asked = (_index(path, matcher) for path in (known_path, asked_path))
    cut = threshold(matcher)
    found = discover(known, asked, cut)
    counts, questions = asked.corpus.counts, asked.corpus.questions
    answered, total = int(counts[found.answered].sum()), int(counts.sum())
    print(
        f"The FAQ answers {answered:,} of {total:,} asked questions ({answered / total:.1%}), "
        f"{int(found.answered.sum()):,} of {len(questions):,} different ones "
        f"(cosine of at least {cut:.3f})."
    )
    for row in np.argsort(-np.where(found.answered, counts, 0), kind="stable")[: min(top, 5)]:
        if found.answered[row]:
            entry = known.corpus.questions[found.known[row]]
            print(f"  {counts[row]:5,}×  {questions[row]}  →  {entry}  ({found.cosine[row]:.3f})")
    print(f"{len(found.new):,} groups of unanswered questions were asked more than once:")
    for entry in found.new[:top]:
        print(f"  {entry.asked:5,}×  {questions[entry.representative]}")
        for row in entry.examples[:3]:
            print(f"          {questions[row]}")


def export(config: Config, target: Path, int8: bool) -> None:
    """Write both models in the formats of other tools."""
    from .export import export as write_models

    matcher = _matcher(config)
    _say(f"cross-encoder: {matcher.chosen_cross}")
    for folder in write_models(matcher, target, int8=int8):
        print(folder)


def _matcher(config: Config) -> Matcher:
    matcher = Matcher.of(config)
    _say(f"bi-encoder: {matcher.chosen}")
    return matcher


def _open(config: Config, path: Path, column: str | None) -> tuple[Matcher, Index]:
    matcher = _matcher(config)
    return matcher, _index(path, matcher, column)


def _index(path: Path, matcher: Matcher, column: str | None = None) -> Index:
    index = open_index(path, matcher, column)
    corpus = index.corpus
    if corpus.repeated or corpus.wordless:
        _say(
            f"{path}: {len(corpus.questions):,} different questions; left out: {corpus.repeated:,} "
            f"repeated, {corpus.wordless:,} without a letter or digit"
        )
    return index


def _prompt() -> Iterable[str]:
    while True:
        try:
            if sys.stdin.isatty():
                print("> ", end="", file=sys.stderr, flush=True)
            line = input()
        except EOFError:
            return
        yield line


def _print_hits(hits: list[Hit]) -> None:
    for hit in hits:
        print(f"{hit.score:.4f}  {hit.question}", flush=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
