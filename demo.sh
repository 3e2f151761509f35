#!/usr/bin/env bash
# ./demo.sh "Why is the sky blue?"   installs and builds what is missing, gets a small model, and streams its answer
# ./demo.sh --serve                  the same, and starts the server instead
set -euo pipefail
cd "$(dirname "$0")"

case "${1:-}" in
  --serve) ;;
  "" | -h | --help)
    sed -n '2,3s/^# //p' "$0"
    [ $# -gt 0 ] && exit 0 || exit 2 ;;
  -*)
    echo "demo.sh: no option $1; give a question or --serve" >&2
    exit 2 ;;
esac

scripts/install-dependencies.sh
[ -f build/release/build.ninja ] || cmake --preset release >&2
cmake --build --preset release --target product >build/release/demo-build.log 2>&1 ||
  { tail -n 40 build/release/demo-build.log >&2; echo "the build failed; build/release/demo-build.log has all of it" >&2; exit 1; }
scripts/get-smollm2.sh

if [ "$1" = --serve ]; then
  exec build/release/bin/mekik serve pipelines/chat.toml
fi
exec build/release/bin/mekik run pipelines/chat.toml --temperature 0 --prompt "$*"
