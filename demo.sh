#!/usr/bin/env bash
# ./demo.sh "Why is the sky blue?"   installs and builds what is missing, gets a small model, and streams its answer
# ./demo.sh --serve                  the same, and starts the server instead
set -euo pipefail
cd "$(dirname "$0")"

usage() { sed -n '2,3s/^# //p' "$0"; }
serve=
case "${1-}" in
  -h | --help)
    usage
    exit 0 ;;
  "")
    usage >&2
    exit 2 ;;
  --serve)
    [ $# -eq 1 ] || { echo "demo.sh: --serve takes no question; ask the server over HTTP (README.md shows how)" >&2; exit 2; }
    serve=1 ;;
  --)
    shift
    [ $# -gt 0 ] || { usage >&2; exit 2; } ;;
  -*)
    echo "demo.sh: no option $1; give a question or --serve (a question that starts with a dash: after --)" >&2
    exit 2 ;;
  *)
    for word; do
      case "$word" in --*)
        echo "demo.sh: no option $word; the demo takes a question, mekik run takes options" >&2
        exit 2 ;;
      esac
    done ;;
esac
question=$*

log=build/release/demo-build.log
# As many compilers as there are cores, and 1.5 GB of memory for each.
memory_kb=$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)
jobs=$((memory_kb / 1500000))
[ "$jobs" -le "$(nproc)" ] || jobs=$(nproc)
[ "$jobs" -ge 1 ] || jobs=1

# Only a terminal gets the count of what is done, in a line that is wiped in the end.
build() {
  cmake --build --preset release --target product --parallel "$jobs" 2>&1 | tee "$log" |
    while IFS= read -r line; do
      if [[ -t 2 && "$line" == \[[1-9]*\]* ]]; then printf '\rbuilding %s]' "${line%%]*}" >&2; fi
    done
}
wipe() { [ ! -t 2 ] || printf '\r\033[K' >&2; }

scripts/install-dependencies.sh
if [ ! -f build/release/build.ninja ]; then
  echo "building mekik: some minutes, this once" >&2
  mkdir -p build/release
  cmake --preset release >"$log" 2>&1 || { tail -n 40 "$log" >&2; echo "cmake failed; $log has all of it" >&2; exit 1; }
fi
build || { wipe; tail -n 40 "$log" >&2; echo "the build failed; $log has all of it" >&2; exit 1; }
wipe
scripts/get-smollm2.sh

if [ -n "$serve" ]; then
  exec build/release/bin/mekik serve pipelines/chat.toml
fi
exec build/release/bin/mekik run pipelines/chat.toml --temperature 0 "--prompt=$question"
