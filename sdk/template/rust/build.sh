#!/bin/sh
# rust/build.sh FOLDER: makes FOLDER/sink_slow.so. Any rustc from 1.60 on; Debian's package is rustc.
set -eu
cd "$(dirname "$0")"
mkdir -p "${1:-../build}"
exec "${RUSTC:-rustc}" --edition 2021 --crate-type cdylib -O -C panic=abort -C strip=symbols -o "${1:-../build}/sink_slow.so" sink_slow.rs
