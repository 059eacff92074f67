"""Measure what the README claims of search.   python -m src.search.bench OUT.json [--profile P]

Needs a trained run on data with a dev file. Seven minutes on two cores with profile `small`.
Nothing cached is used. Every number is printed as it comes and written to OUT.json.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from scipy.special import expit
from sentence_transformers import CrossEncoder, SentenceTransformer
from sklearn.metrics import roc_auc_score

from ...config import load_config
from ...files import write_json, write_text
from ...search.commands import cross_encoder_rate, nearest_questions
from ...search.duplicates import labelled_groups
from ...search.export import export
from ...search.index import build_index, open_index
from ...search.matcher import Matcher
from ...search.mine import mine
from ...search.nearest import exact_nearest
from ...search.onnx import MODEL, MODEL_INT8, run_onnx
from ...step import peak_memory_gb
from .vector_quality import on_dev, out_of_fold, out_of_fold_threshold, pair_cosines, share

MINED, SEARCHED, MANY = 10_000, 100_000, 1_000_000
PARITY_PAIRS = 200


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--profile", default="small", show_default=True)
@click.argument("overrides", nargs=-1)
def main(target: Path, profile: str, overrides: tuple[str, ...]) -> None:
    """Measure everything."""
    started = time.perf_counter()
    config = load_config(profile, list(overrides))
    matcher = Matcher.of(config)
    results: dict[str, Any] = {"bi-encoder": str(matcher.piece)}
    parts: dict[str, Callable[[Matcher, Path], dict[str, Any]]] = {
        "mining": mining,
        "search": searching,
        "a million": a_million,
        "vectors": lambda matcher, _: on_dev(matcher),
        "averaging, out of fold": lambda matcher, _: out_of_fold(matcher),
        "export": exported,
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in parts.items():
            results[name] = measure(matcher, Path(folder))
            print(name, results[name], flush=True)
            write_json(target, results)
    results["seconds"] = round(time.perf_counter() - started)
    write_json(target, results)


def mining(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """The article's task: the most similar pairs among 10,000 questions, against the time that
    the cross-encoder would take at the rate measured here."""
    frames = [matcher.layout.table(role) for role in ("train", "dev")]
    columns = [frame[name] for frame in frames for name in ("query1", "query2")]
    questions = list(pd.unique(pd.concat(columns).str.strip()))[:MINED]
    path = folder / "mined.txt"
    write_text(path, "\n".join(questions))
    started = time.perf_counter()
    index = open_index(path, matcher)
    opened = time.perf_counter()
    found = mine(index, 100)
    seconds = time.perf_counter() - started
    pairs = len(index) * (len(index) - 1) // 2
    rate = cross_encoder_rate(matcher, index)
    return {
        "questions": len(index),
        "pairs": pairs,
        "encode_s": round(index.encode_seconds, 1),
        "search_s": round(started + seconds - opened, 2),
        "total_s": round(seconds, 1),
        "best_cosine": round(found[0][0], 4),
        "cross_encoder": str(matcher.cross_piece),
        "cross_pairs_per_s": round(rate, 1),
        "cross_hours": round(pairs / rate / 3600, 1),
        "ratio": round(pairs / rate / seconds),
    }


def searching(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """Latency over 100,000 cached questions. Their vectors are synthetic: it does not depend on
    where they lie. The query is encoded by the model."""
    width = matcher.encoder.hidden_size
    index = _synthetic(folder / "searched.txt", SEARCHED, width)
    times, reranked = [], []
    for number in range(30):
        started = time.perf_counter()
        nearest_questions(matcher, index, f"感冒第{number}天可以吃海鲜吗", 5, rerank=False)
        times.append(time.perf_counter() - started)
    for number in range(5):
        started = time.perf_counter()
        nearest_questions(matcher, index, f"感冒第{number}天可以吃海鲜吗", 5, rerank=True)
        reranked.append(time.perf_counter() - started)
    return {
        "questions": len(index),
        "median_ms": round(1000 * float(np.median(times)), 1),
        "slowest_ms": round(1000 * max(times[1:]), 1),
        "first_ms": round(1000 * times[0], 1),
        "reranked_median_ms": round(1000 * float(np.median(reranked))),
    }


def a_million(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """Index and search a million synthetic vectors in a process of its own, to see its memory."""
    width = matcher.encoder.hidden_size
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_a_million, (folder, width))


def _a_million(folder: Path, width: int) -> dict[str, Any]:
    started = time.perf_counter()
    index = _synthetic(folder / "many.txt", MANY, width)
    built = time.perf_counter() - started
    rng = np.random.default_rng(1)
    rows = rng.choice(len(index), 100, replace=False)
    queries = _noisy(index.vectors[rows], rng)
    times, hits = [], 0
    _, exact = exact_nearest(queries, index.vectors, 10)
    for query, wanted in zip(queries, exact, strict=True):
        started = time.perf_counter()
        _, found = index.nearest(query[None], 10)
        times.append(time.perf_counter() - started)
        hits += len(np.intersect1d(found[0], wanted))
    return {
        "questions": len(index),
        "index_s": round(built, 1),
        "median_ms": round(1000 * float(np.median(times)), 1),
        "recall_at_10_of_exact": hits / exact.size,
        "peak_memory_gb": round(peak_memory_gb(), 2),
    }


def _synthetic(path: Path, count: int, width: int):
    """An index of `count` synthetic questions: 20 vectors around each of count / 20 centres."""
    write_text(path, "\n".join(f"问题{number}" for number in range(count)))

    def fill(questions: list[str], out: np.ndarray) -> None:
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((max(1, count // 20), width), np.float32)
        for start in range(0, len(questions), 50_000):
            block = out[start : start + 50_000]
            chosen = centres[rng.integers(0, len(centres), len(block))]
            block[:] = _noisy(chosen / np.linalg.norm(chosen, axis=1, keepdims=True), rng)

    return build_index(path, width, {"synthetic": count}, fill)


def _noisy(unit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Vectors of length 1 with a cosine of about 0.9 to those given."""
    noise = rng.standard_normal(unit.shape, np.float32) * (0.48 / np.sqrt(unit.shape[1]))
    moved = unit + noise
    return (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)


def exported(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """Parity of what is exported with the project's own predictions in fp32; what int8 costs."""
    exact = Matcher.of(matcher.config, precision="fp32")
    started = time.perf_counter()
    bi, cross = export(exact, folder / "models", int8=True)
    seconds = time.perf_counter() - started
    dev = exact.layout.table("dev")
    pairs = list(zip(dev["query1"], dev["query2"], strict=True))
    some = pairs[:PARITY_PAIRS]
    questions = [question for pair in some for question in pair]
    own_vectors = exact.encode(questions)
    reversed_pairs = [(second, first) for first, second in some]
    model = CrossEncoder(str(cross), device="cpu")
    theirs = [model.predict(list(both)) for both in (some, reversed_pairs)]
    own = exact.rerank(some)
    own_questions, _ = labelled_groups(dev)
    fp32, int8 = (run_onnx(bi, name, own_questions) for name in (MODEL, MODEL_INT8))
    cosines, int8_cosines = (pair_cosines(dev, own_questions, v) for v in (fp32, int8))
    labels = (dev["label"] == 1).to_numpy()
    # Chosen for the fp32 vectors; whoever takes the int8 model has no other.
    cut = out_of_fold_threshold(exact, lambda texts: run_onnx(bi, MODEL, texts))
    cross_fp32, cross_int8 = (run_onnx(cross, name, pairs)[:, 0] for name in (MODEL, MODEL_INT8))
    both_onnx = [run_onnx(cross, MODEL, some)[:, 0], run_onnx(cross, MODEL, reversed_pairs)[:, 0]]
    return {
        "export_s": round(seconds, 1),
        "sentence_transformers_cosine": _lowest_cosine(
            own_vectors, SentenceTransformer(str(bi), device="cpu").encode(questions)
        ),
        "onnx_cosine": _lowest_cosine(own_vectors, run_onnx(bi, MODEL, questions)),
        "cross_encoder_difference": _difference(own, _mean_logit(theirs)),
        "cross_onnx_difference": _difference(own, expit(np.mean(both_onnx, axis=0))),
        "int8_mb": [_megabytes(f, MODEL_INT8) for f in (bi, cross)],
        "fp32_mb": [_megabytes(f, MODEL) for f in (bi, cross)],
        "bi_auc_fp32_int8": [
            round(float(roc_auc_score(labels, c)), 4) for c in (cosines, int8_cosines)
        ],
        "bi_accuracy_fp32_int8": [share((c >= cut) == labels) for c in (cosines, int8_cosines)],
        "cross_accuracy_fp32_int8": [share((c > 0) == labels) for c in (cross_fp32, cross_int8)],
    }


def _mean_logit(probabilities: list[np.ndarray]) -> np.ndarray:
    logits = [np.log(p) - np.log1p(-p) for p in np.asarray(probabilities, np.float64)]
    return expit(np.mean(logits, axis=0))


def _lowest_cosine(own: np.ndarray, theirs: np.ndarray) -> float:
    return round(float(np.einsum("ij,ij->i", own, theirs).min()), 6)


def _difference(own: np.ndarray, theirs: np.ndarray) -> float:
    return float(f"{np.abs(own - theirs).max():.2e}")


def _megabytes(folder: Path, name: str) -> float:
    return round((folder / "onnx" / name).stat().st_size / 1e6, 1)


if __name__ == "__main__":
    main()
