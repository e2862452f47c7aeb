#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian/Ubuntu packages that the build needs and that are missing.
# Usage: tools/install_packages.sh [--check] [--rtl] PYTHON
# With --check it installs nothing: it names what is missing, and the command, and exits 1. With
# --rtl it is about what the hardware in rtl/ needs, instead.
set -euo pipefail
mode=install
if [ "${1:-}" = --check ]; then mode=check; shift; fi
needs_rtl=no
if [ "${1:-}" = --rtl ]; then needs_rtl=yes; shift; fi
python=${1:-python3}

packages=(g++ make cmake ninja-build pkg-config ccache
  libboost-context-dev libfmt-dev libhwy-dev libgtest-dev libbenchmark-dev
  libucx-dev)
command -v "$python" >/dev/null || packages+=(python3)
if ! "$python" - <<'PY' 2>/dev/null
import ensurepip, os, sysconfig, venv
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
PY
then packages+=(python3-venv python3-dev); fi
if [ $needs_rtl = yes ]; then packages=(verilator yosys gcc-riscv64-unknown-elf); fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ $mode = check ]; then
  echo "towpath needs packages that are not installed: ${missing[*]}" >&2
  echo "\`make deps\` installs them, or: apt-get install ${missing[*]}" >&2
  exit 1
elif ! command -v apt-get >/dev/null; then
  echo "towpath needs packages that only apt-get could install here: ${missing[*]}" >&2
  exit 1
elif [ "$(id -u)" = 0 ]; then as_root=()
elif sudo -n true 2>/dev/null; then as_root=(sudo -n)
else
  echo "towpath needs packages; call again after: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq "${missing[@]}" >/dev/null
