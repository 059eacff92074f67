"""A hub on loopback, really spoken to: its names, redirects, hashes, and a body that breaks off."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from tiny_run import ROOT, cut_sample, settings
from transformers import BertConfig, BertForMaskedLM

from src.files import read_json

NAME, COMMIT = "hub-user/bert-of-the-tests", "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """A model hub with one model, whose weights are a .bin; the first answer to them breaks off."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.asked, self.broken = files, [], 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    """What a hub says: model info, tree, HEAD and GET of files with a redirect for large ones."""

    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append(f"{self.command} {path}")
        model = f"/api/models/{NAME}"
        if path in (model, f"{model}/revision/main", f"{model}/revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in self.server.files]
            self.say(json.dumps({"id": NAME, "sha": COMMIT, "siblings": siblings}).encode())
        elif path.startswith(f"{model}/tree/"):
            self.say(json.dumps([self.entry(name) for name in self.server.files]).encode())
        elif path.startswith(f"/{NAME}/resolve/"):
            self.resolve(path.split("/", 5)[5])
        elif path.startswith("/store/"):
            self.store(path.removeprefix("/store/"))
        else:
            self.say(b"{}", 404, {"X-Error-Code": "RepoNotFound"})

    def entry(self, name: str) -> dict:
        content = self.server.files[name]
        found = {"type": "file", "path": name, "size": len(content), "oid": "a" * 40}
        if name.endswith(".bin"):
            found["lfs"] = {"oid": digest(content), "size": len(content), "pointerSize": 134}
        return found

    def resolve(self, name: str) -> None:
        if name not in self.server.files:
            self.say(b"", 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
            return
        content, about = self.server.files[name], {"X-Repo-Commit": COMMIT}
        if name.endswith(".bin"):
            about |= {"X-Linked-Etag": f'"{digest(content)}"', "X-Linked-Size": str(len(content))}
            elsewhere = self.server.address.replace("127.0.0.1", "localhost")  # as a real one does
            self.say(b"", 302, about | {"Location": f"{elsewhere}/store/{name}"})
        else:
            self.say(content, 200, about | {"ETag": f'"{digest(content)[:40]}"'})

    def store(self, name: str) -> None:
        content = self.server.files[name]
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        body = content[start:]
        status, about = 200, {"ETag": f'"{digest(content)}"'}
        if "Range" in self.headers:
            status = 206
            about["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if self.command == "GET" and not self.server.broken:
            self.server.broken += 1
            self.say(body, status, about, half=True)
        else:
            self.say(body, status, about)

    def say(self, body: bytes, status: int = 200, about: dict | None = None, half=False) -> None:
        self.send_response(status)
        for name, value in (about or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[: len(body) // 2] if half else body)
        if half:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Silence."""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("hub")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(0x4E00, 0x4F00))]
    shape = {"vocab_size": len(words), "hidden_size": 32, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 128}
    torch.manual_seed(0)
    torch.save(BertForMaskedLM(BertConfig(**shape)).state_dict(), folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps(shape | {"model_type": "bert"}))
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    (folder / "README.md").write_text("a model")
    hub = Hub({path.name: path.read_bytes() for path in folder.iterdir()})
    yield hub
    hub.shutdown()


def train(folder: Path, home: Path, sample: Path, *launch: str, **environment: str):
    """Train one fold on the hub's encoder; the hub's cache is in `home`."""
    cut_sample(sample, folder / "data", train=60, other=20)
    member = f"members.siamese-fgm.encoder={NAME}"
    chosen = ["--profile", "tiny", "--member", "siamese-fgm", "--fold", "0", member]
    own = {"HF_HOME": str(home), "HF_HUB_ETAG_TIMEOUT": "3", "HF_HUB_DISABLE_XET": "1"}
    return subprocess.run(
        [sys.executable, "-m", "src", *launch, "train", *chosen, *settings(folder, home / "made")],
        env=os.environ | own | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_model_of_the_hub_then_offline_then_no_hub(
    hub: Hub, tmp_path: Path, sample: Path
) -> None:
    home = tmp_path / "home"
    run = train(tmp_path / "online", home, sample, "launch", "2", HF_ENDPOINT=hub.address)
    assert run.returncode == 0, run.stderr[-3000:]
    model = tmp_path / "online" / "work" / "tiny" / "train" / "siamese-fgm" / "fold0"
    loaded = read_json(model / "member.json")["loaded"]
    assert loaded["commit"] == COMMIT
    assert loaded["from"] == {"pytorch_model.bin": digest(hub.files["pytorch_model.bin"])}
    fetched = [line for line in hub.asked if line == "GET /store/pytorch_model.bin"]
    assert hub.broken == 1 and len(fetched) == 2, "two processes download once, after one break"
    assert not [line for line in hub.asked if "README" in line]

    run = train(tmp_path / "offline", home, sample, HF_HUB_OFFLINE="1")
    assert run.returncode == 0, run.stderr[-3000:]
    again = tmp_path / "offline" / "work" / "tiny" / "train" / "siamese-fgm" / "fold0"
    assert read_json(again / "member.json")["loaded"] == loaded

    # Behind a hub that is gone the cache serves, too; without a cache there is one clear message.
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    began = time.monotonic()
    run = train(tmp_path / "gone", tmp_path / "empty", sample, **nowhere)
    assert run.returncode == 2 and time.monotonic() - began < 30
    assert "Traceback" not in run.stderr
    message = run.stderr[run.stderr.index("error: ") :]
    assert NAME in message and "HF_ENDPOINT" in message and "encoder=e5-small-zh" in message
