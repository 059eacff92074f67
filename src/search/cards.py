"""The README of an exported model."""

from pathlib import Path

from ..files import read_json
from .matcher import Matcher

# Of the encoders whose licence is known here; that of any other is for its user to state.
_LICENCES = {"e5-small-zh": "mit", "tiny": "mit"}
_DATA = (
    "Tianchi competition 231776 (Covid-19 similar sentence pairs; Chinese, ten respiratory "
    "diseases)"
)
_SAMPLE = "this project's small sample, which shows the machinery at work and no more"

_HEADER = """---
language: zh
{licence}library_name: sentence-transformers
pipeline_tag: {task}
---
# {title}

Are two patients' questions the same question? Fine-tuned on the pairs of {data}.

- member `{name}` of profile `{profile}`, fold {fold}: the one with the lowest out-of-fold loss,
  {loss:.4f}
- encoder `{encoder}`, {parameters:.1f} million parameters
- up to {length} tokens; longer texts are cut
"""

_ONNX = """
## onnxruntime

`onnx/model.onnx`{int8}: int64 `input_ids`, `attention_mask`, `token_type_ids` [batch, width] →
float32 `{output}` [batch, {width}]{meaning}.

```python
import onnxruntime
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(DIR)
session = onnxruntime.InferenceSession(f"{{DIR}}/onnx/model.onnx")
inputs = tokenizer({example}, padding=True, truncation=True, return_tensors="np",
                   return_token_type_ids=True)
(values,) = session.run(None, dict(inputs))
```
"""

_LIMITS = """
## Limits

Made for short questions of patients about respiratory diseases. It says whether two questions ask
the same, never what the answer is, and is no medical device. Other languages and long texts were
not tested.
"""


def bi_encoder_card(matcher: Matcher, int8: bool) -> str:
    """Model card of the sentence-transformers directory."""
    title, task = "Question vectors", "sentence-similarity"
    head = _header(matcher, matcher.piece, matcher.encoder, title, task)
    use = """
## Use

```python
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(DIR)
vectors = model.encode(["感冒可以吃海鲜吗", "得了感冒能吃海鲜吗"])
print(vectors[0] @ vectors[1])  # vectors have length 1: the product is the cosine
```

The weights are the mean of the pre-trained and the fine-tuned encoder's. The classifier over
(u, v, |u − v|) of the fine-tuning is not part of this directory; compare vectors by their cosine.
"""
    onnx = _onnx(
        int8,
        "sentence_embedding",
        matcher.encoder.hidden_size,
        ", length 1",
        '["感冒可以吃海鲜吗"]',
    )
    return head + use + onnx + _LIMITS


def cross_encoder_card(matcher: Matcher, int8: bool) -> str:
    """Model card of the CrossEncoder directory."""
    network, _ = matcher.cross
    head = _header(matcher, matcher.cross_piece, network, "Same question?", "text-ranking")
    use = """
## Use

```python
from sentence_transformers import CrossEncoder
model = CrossEncoder(DIR)
model.predict([("感冒可以吃海鲜吗", "得了感冒能吃海鲜吗")])  # probability of "the same question"
```

The project reads a pair in both orders and averages the two logits; one call reads one order.

The head is Pooling (mean and [CLS], joined), Dense with tanh, Dense: modules of
sentence-transformers, version 5.4 or newer. `AutoModelForSequenceClassification` has no such head
and would load the encoder without it.
"""
    onnx = _onnx(int8, "scores", 1, " (logits)", '"感冒可以吃海鲜吗", "得了感冒能吃海鲜吗"')
    return head + use + onnx + _LIMITS


def _header(matcher: Matcher, piece, network, title: str, task: str) -> str:
    pair = 2 if piece.member.architecture == "cross" else 1
    encoder = Path(piece.member.encoder)
    licence = _LICENCES.get(str(encoder))
    return _HEADER.format(
        licence=f"license: {licence}\n" if licence else "",
        data=_SAMPLE if read_json(matcher.layout.facts_file)["is_sample"] else _DATA,
        task=task,
        title=title,
        name=piece.name,
        profile=matcher.config.profile,
        fold=piece.fold,
        loss=piece.loss,
        # Of a directory only its name, not where it lay.
        encoder=encoder.name if encoder.is_dir() else encoder,
        parameters=sum(p.numel() for p in network.parameters()) / 1e6,
        length=pair * piece.member.max_length,
    )


def _onnx(int8: bool, output: str, width: int, meaning: str, example: str) -> str:
    also = " (and `model_int8.onnx`, 8-bit weights)" if int8 else ""
    return _ONNX.format(int8=also, output=output, width=width, meaning=meaning, example=example)
