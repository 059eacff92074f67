#!/usr/bin/env bash
# The whole pipeline:   bash run.sh [--profile small|large|fast|tiny] [key=value ...]
# The tests:            bash run.sh test [pytest arguments]
# Score another file:   bash run.sh predict INPUT.csv OUTPUT.csv [--profile P]
# Use what is trained:  bash run.sh search|mine|cluster|faq|export …
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$root/.venv"
python="$venv/bin/python"
installed="$venv/installed-requirements.txt"

# A killed installation is repeated: the copy of requirements.txt marks one that has succeeded.
if [[ ! -x "$python" ]] || ! cmp -s "$root/requirements.txt" "$installed"; then
  if ! "$python" -m pip --version >/dev/null 2>&1; then
    host="${PYTHON:-python3}"
    if ! "$host" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; then
      echo "error: Python 3.11, 3.12 or 3.13 is needed; $host is $("$host" --version 2>&1)." >&2
      echo "Name another one: PYTHON=/path/to/python3.12 bash run.sh" >&2
      exit 2
    fi
    echo "── make .venv" >&2
    "$host" -m venv --clear "$venv"
  fi
  echo "── install requirements.txt (a few minutes, once)" >&2
  "$python" -m pip install --quiet --disable-pip-version-check -r "$root/requirements.txt"
  cp "$root/requirements.txt" "$installed"
fi

export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
case "${1:-}" in
  test)
    shift
    cd "$root"
    exec "$python" -m pytest "$@"
    ;;
  predict | audit | compare | search | mine | cluster | faq | export | study | pretrain | bench)
    exec "$python" -m src "$@"
    ;;
  *)
    exec "$python" -m src run "$@"
    ;;
esac
