#!/usr/bin/env bash
# The one door: bash run.sh [COMMAND] …    from any directory; bash run.sh --help lists the commands.
# The whole pipeline:   bash run.sh [--profile small|large|fast|tiny] [key=value ...]
# The tests:            bash run.sh test [pytest arguments]
# Formatter, linter, types:   bash run.sh check
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="$root/.venv"
python="$venv/bin/python"

# install FILE: a copy of FILE in .venv marks an installation that has succeeded; a killed one is repeated.
install() {
  cmp -s "$root/$1" "$venv/installed-$1" && return
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
  echo "── install $1 (once; a few minutes)" >&2
  "$python" -m pip install --quiet --disable-pip-version-check -r "$root/$1"
  cp "$root/$1" "$venv/installed-$1"
}

install requirements.txt
case "${1:-}" in
  study | bench | pretrain | test | check) install requirements-lab.txt ;;
esac

export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
case "${1:-}" in
  test)
    shift
    cd "$root"
    # Two workers with a thread each are faster than one with two: the models are tiny.
    OMP_NUM_THREADS=1 exec "$python" -m pytest -n 2 --dist worksteal "$@"
    ;;
  check)
    cd "$root"
    "$python" -m ruff format --check src tests
    "$python" -m ruff check src tests
    exec "$python" -m mypy
    ;;
  *)
    exec "$python" -m src "$@"
    ;;
esac
