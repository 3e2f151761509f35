#!/usr/bin/env bash
# Installs the Debian packages that building needs, and only those that are missing. With "test" also what the tests need.
# With "fuzz" also what the preset fuzz needs.
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config ccache git
  libboost1.81-dev libboost-program-options1.81-dev libboost-json1.81-dev
  libtomlplusplus-dev libspdlog-dev libpcre2-dev libutf8proc-dev libxxhash-dev libssl-dev libhiredis-dev
  libvulkan-dev glslc
  python3 python3-pip)
if [ "${1:-}" = test ]; then
  packages+=(catch2 python3-venv clang-format-14 qemu-user curl redis-tools rustc
    mesa-vulkan-drivers vulkan-validationlayers abigail-tools)
fi

[ "${1:-}" != fuzz ] || packages+=(clang libclang-rt-14-dev)

if ! command -v dpkg-query >/dev/null; then
  for tool in cmake ninja g++ pkg-config python3; do
    command -v "$tool" >/dev/null || missing_tool=1
  done
  if [ -n "${missing_tool:-}" ]; then
    echo "This script installs packages on Debian 12. On this system please install what these packages hold:" >&2
    printf '  %s\n' "${packages[@]}" >&2
    exit 1
  fi
  exit 0
fi

# One question for all of them: this runs at every start of the demo.
installed=" $(dpkg-query -W -f='${db:Status-Abbrev}${Package} ' "${packages[@]}" 2>/dev/null || true)"
missing=()
for package in "${packages[@]}"; do
  [[ "$installed" == *" ii $package "* ]] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing: ${missing[*]}" >&2
if [ "$(id -u)" = 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  echo "Installing packages needs root, and there is no sudo. Please run this as root, then start again:" >&2
  echo "  apt-get update && apt-get install -y ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "apt-get failed; the lines above say why (is the network there?)" >&2
  exit 1
fi
