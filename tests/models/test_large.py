"""The large profile on an encoder of its size, random, from a local directory.

No network is needed: BERT-large in the shape of hfl/chinese-roberta-wwm-ext-large is written as a
checkpoint, then loaded, trained for one step by both architectures, saved, loaded again and used.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_run import ROOT

SCRIPT = """
import json, sys
from pathlib import Path
import numpy as np
import pandas as pd
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from src.config import load_config
from tiny_run import fold_files
from src.step import peak_memory_gb
from src.training.fold_model import load_fold_model, train_fold_model

folder = Path(sys.argv[1])
encoder = folder / "roberta-large-shape"
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
words += [chr(code) for code in range(0x4E00, 0x4E00 + 21128 - len(words))]
(folder / "vocab.txt").write_text("\\n".join(words), encoding="utf-8")
BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(encoder)
with torch.device("meta"):
    shape = BertModel(BertConfig(vocab_size=21128, hidden_size=1024, num_hidden_layers=24,
                                 num_attention_heads=16, intermediate_size=4096))
shape.to_empty(device="cpu")
for name, p in shape.named_parameters():
    p.data.fill_(1.0 if "LayerNorm.weight" in name else 0.0)
    if p.ndim == 2:
        p.data.normal_(0, 0.02)
shape.save_pretrained(encoder)
parameters = sum(p.numel() for p in shape.parameters())
del shape

config = load_config("large", ["training.epochs=1", "training.batch_pairs=4"])
pairs = pd.DataFrame({"id": ["0", "1", "2", "3"], "category": "",
                      "query1": ["感冒吃什么药", "感冒吃什么药", "咳嗽怎么办", "肺炎会传染吗"],
                      "query2": ["感冒用什么药", "感冒会发烧吗", "咳嗽怎么治", "肺炎能治好吗"],
                      "label": [1, 0, 1, 0]})
answer = {"parameters": parameters}
for name, member in config.members.items():
    member = member.model_copy(update={"encoder": str(encoder)})
    made = folder / name
    made.mkdir()
    train_fold_model(member, fold_files(made, pairs, pairs), 0.5, folder, None, made)
    again = load_fold_model(made, folder).predict(pairs)
    answer[name] = {"same": bool(np.array_equal(again, np.load(made / "oof.npy"))),
                    "finite": bool(np.isfinite(again).all())}
answer["peak_memory_gb"] = round(peak_memory_gb(), 2)
print(json.dumps(answer))
"""


def test_large_profile_trains_and_predicts(tmp_path: Path) -> None:
    """One step a member; the predictions of the saved weights are those of training."""
    if _free_memory_gb() < 10:
        pytest.skip("needs 10 GB of free memory")
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    answer = json.loads(run.stdout.splitlines()[-1])
    print(answer)
    assert answer["parameters"] > 320e6
    for name in ("siamese-pgd", "cross-fgm"):
        assert answer[name] == {"same": True, "finite": True}
    assert answer["peak_memory_gb"] < 10


def _free_memory_gb() -> float:
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return float("inf")
    line = next(line for line in text.splitlines() if line.startswith("MemAvailable"))
    return int(line.split()[1]) * 1024 / 1e9
