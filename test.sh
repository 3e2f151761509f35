#!/usr/bin/env bash
# ./test.sh         installs what is missing, builds, and runs every quick test
# ./test.sh --all   adds the long ones: sanitizers (preset dev) and whatever carries the label "long"
set -euo pipefail
cd "$(dirname "$0")"

all=
case "${1:-}" in
  "") ;;
  --all) all=1 ;;
  *)
    sed -n '2,3s/^# //p' "$0"
    [ "$1" = --help ] && exit 0 || exit 2 ;;
esac

scripts/install-dependencies.sh test
if [ ! -x tests/.venv/bin/python ] || [ tests/requirements.txt -nt tests/.venv/ready ]; then
  python3 -m venv tests/.venv
  tests/.venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
  touch tests/.venv/ready
fi
scripts/get-smollm2.sh
[ -z "$all" ] || scripts/get-gemma3.sh

jobs=2
cmake --preset release -DMEKIK_TESTS=ON
cmake --build --preset release --parallel "$jobs"
if [ -n "$all" ]; then
  cmake --preset dev -DMEKIK_TESTS=ON
  cmake --build --preset dev --parallel "$jobs"
  ctest --preset dev -LE "bench" --parallel "$jobs"
  ctest --preset release --parallel "$jobs"
else
  ctest --preset release -LE "long|bench" --parallel "$jobs"
fi
