"""What the documentation claims of search: speed, memory, the vectors' worth, parity of exports."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sentence_transformers import CrossEncoder, SentenceTransformer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from ...config import Config
from ...files import write_json, write_text
from ...search.commands import cross_encoder_rate, nearest_questions
from ...search.duplicates import labelled_groups
from ...search.export import export
from ...search.index import Index, build_index, exact_nearest, open_index
from ...search.matcher import Matcher
from ...search.mine import mine
from ...search.onnx import MODEL, MODEL_INT8, run_onnx
from ...step import peak_memory_gb
from .turns import in_processes, now, timed
from .vector_quality import dev_table, on_dev, out_of_fold, own_threshold, pair_cosines, share

MINED, SEARCHED, MANY = 10_000, 100_000, 1_000_000
PARITY_PAIRS = 200


def measure_search(config: Config, target: Path) -> None:
    """Measure everything; every number is printed as it comes and written to `target`.

    Raises:
        UserError: nothing is trained, or the run has no dev file.
    """
    started, matcher = now(), Matcher.of(config)
    results: dict[str, Any] = {"bi-encoder": str(matcher.chosen)}
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
    results["seconds"] = round(now() - started)
    write_json(target, results)


def mining(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """The article's task: the most similar pairs among 10,000 questions, against the time that
    the cross-encoder would take at the rate measured here."""
    frames = [matcher.layout.train(), dev_table(matcher)]
    texts = [text.strip() for f in frames for name in ("query1", "query2") for text in f[name]]
    path = folder / "mined.txt"
    write_text(path, "\n".join(list(dict.fromkeys(texts))[:MINED]))
    index, opening = timed(lambda: open_index(path, matcher))
    found, searching = timed(lambda: mine(index, 100))
    pairs = len(index) * (len(index) - 1) // 2
    rate = cross_encoder_rate(matcher, index)
    return {
        "questions": len(index),
        "pairs": pairs,
        "encode_s": round(index.encode_seconds, 1),
        "search_s": round(searching, 2),
        "total_s": round(opening + searching, 1),
        "best_cosine": share(found[0][0]),
        "cross_encoder": str(matcher.chosen_cross),
        "cross_pairs_per_s": round(rate, 1),
        "cross_hours": round(pairs / rate / 3600, 1),
        "ratio": round(pairs / rate / (opening + searching)),
    }


def searching(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """Latency over 100,000 cached questions. Their vectors are synthetic: it does not depend on
    where they lie. The query is encoded by the model."""
    index = _synthetic(folder / "searched.txt", SEARCHED, matcher.encoder.hidden_size)

    def seconds(number: int, rerank: bool) -> float:
        query = f"感冒第{number}天可以吃海鲜吗"
        return timed(lambda: nearest_questions(matcher, index, query, 5, rerank))[1]

    times = [seconds(number, rerank=False) for number in range(30)]
    reranked = [seconds(number, rerank=True) for number in range(5)]
    return {
        "questions": len(index),
        "median_ms": round(1000 * float(np.median(times)), 1),
        "slowest_ms": round(1000 * max(times[1:]), 1),
        "first_ms": round(1000 * times[0], 1),
        "reranked_median_ms": round(1000 * float(np.median(reranked))),
    }


def a_million(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """Index and search a million synthetic vectors in a process of its own, to see its memory."""
    return in_processes(_a_million, [(folder, matcher.encoder.hidden_size)])[0]


def _a_million(folder: Path, width: int) -> dict[str, Any]:
    index, built = timed(lambda: _synthetic(folder / "many.txt", MANY, width))
    rng = np.random.default_rng(1)
    queries = _noisy(index.vectors[rng.choice(len(index), 100, replace=False)], rng)
    _, exact = exact_nearest(queries, index.vectors, 10)
    answers = [timed(partial(index.nearest, query[None], 10)) for query in queries]
    pairs = zip(answers, exact, strict=True)
    hits = [len(np.intersect1d(found, wanted)) for ((_, found), _), wanted in pairs]
    return {
        "questions": len(index),
        "index_s": round(built, 1),
        "median_ms": round(1000 * float(np.median([seconds for _, seconds in answers])), 1),
        "recall_at_10_of_exact": sum(hits) / exact.size,
        "peak_memory_gb": round(peak_memory_gb(), 2),
    }


def _synthetic(path: Path, count: int, width: int) -> Index:
    """An index of `count` synthetic questions: 20 vectors around each of count / 20 centres."""
    write_text(path, "\n".join(f"问题{number}" for number in range(count)))

    def fill(questions: list[str], out: np.ndarray) -> None:
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((max(1, count // 20), width), np.float32)
        for start in range(0, len(questions), 50_000):
            block = out[start : start + 50_000]
            chosen = centres[rng.integers(0, len(centres), len(block))]
            block[:] = _noisy(normalize(chosen), rng)

    return build_index(path, width, {"synthetic": count}, fill)


def _noisy(unit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Vectors of length 1 with a cosine of about 0.9 to those given."""
    noise = rng.standard_normal(unit.shape, np.float32) * (0.48 / np.sqrt(unit.shape[1]))
    return normalize(unit + noise).astype(np.float32)


def exported(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """Parity of what is exported with the project's own predictions in fp32; what int8 costs."""
    exact = Matcher.of(matcher.config, precision="fp32")
    (bi, cross), seconds = timed(lambda: export(exact, folder / "models", int8=True))
    return {
        "export_s": round(seconds, 1),
        **_parity(exact, bi, cross),
        "int8_mb": [_megabytes(f, MODEL_INT8) for f in (bi, cross)],
        "fp32_mb": [_megabytes(f, MODEL) for f in (bi, cross)],
        **_cost_of_int8(exact, bi, cross),
    }


def _parity(exact: Matcher, bi: Path, cross: Path) -> dict[str, float]:
    """Lowest cosine of two vectors of one question, largest difference of a pair's probability."""
    dev = dev_table(exact)[:PARITY_PAIRS]
    pairs = list(zip(dev["query1"], dev["query2"], strict=True))
    both_orders = [pairs, [(second, first) for first, second in pairs]]
    questions = [question for pair in pairs for question in pair]
    vectors, probabilities = exact.encode(questions), exact.rerank(pairs)
    their_bi = SentenceTransformer(str(bi), device="cpu")
    their_cross = CrossEncoder(str(cross), device="cpu")
    their_logits = [logit(their_cross.predict(order).astype(float)) for order in both_orders]
    onnx_logits = [run_onnx(cross, MODEL, order)[:, 0] for order in both_orders]

    def lowest_cosine(others: np.ndarray) -> float:
        return round(float(np.einsum("ij,ij->i", vectors, others).min()), 6)

    def difference(logits: list[np.ndarray]) -> float:
        return float(f"{np.abs(probabilities - expit(np.mean(logits, axis=0))).max():.2e}")

    return {
        "sentence_transformers_cosine": lowest_cosine(their_bi.encode(questions)),
        "onnx_cosine": lowest_cosine(run_onnx(bi, MODEL, questions)),
        "cross_encoder_difference": difference(their_logits),
        "cross_onnx_difference": difference(onnx_logits),
    }


def _cost_of_int8(exact: Matcher, bi: Path, cross: Path) -> dict[str, list[float]]:
    """On dev, of the graphs in fp32 and with 8-bit weights."""
    dev = dev_table(exact)
    is_same, (questions, _) = (dev["label"] == 1).to_numpy(), labelled_groups(dev)
    # Chosen for the fp32 vectors; whoever takes the int8 model has no other.
    cut = own_threshold(exact, lambda texts: run_onnx(bi, MODEL, texts))
    pairs = list(zip(dev["query1"], dev["query2"], strict=True))
    graphs = (MODEL, MODEL_INT8)
    cosines = [pair_cosines(dev, questions, run_onnx(bi, name, questions)) for name in graphs]
    logits = [run_onnx(cross, name, pairs)[:, 0] for name in graphs]
    return {
        "bi_auc_fp32_int8": [share(roc_auc_score(is_same, values)) for values in cosines],
        "bi_accuracy_fp32_int8": [share((values >= cut) == is_same) for values in cosines],
        "cross_accuracy_fp32_int8": [share((values > 0) == is_same) for values in logits],
    }


def _megabytes(folder: Path, name: str) -> float:
    return round((folder / "onnx" / name).stat().st_size / 1e6, 1)
