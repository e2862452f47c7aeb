#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# In a bare root: installs the wheel in dist/ for this Python and runs the first commands of a
# reader.
set -euo pipefail
cd "$(dirname "$0")/.."
limit_s=5
if ! command -v python3 >/dev/null || ! python3 -c "import ensurepip" 2>/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    python3 python3-venv >/dev/null
fi
for compiler in c++ g++ clang++; do
  ! command -v "$compiler" || { echo "first_commands: there is a compiler here" >&2; exit 1; }
done
tag=$(python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
wheel=$(ls dist/towpath-*-"$tag"-"$tag"-manylinux*_x86_64.whl)

# A folder of the reader's, from which nothing of the clone is in reach.
folder=$(mktemp -d)
python3 -m venv "$folder/venv"
SECONDS=0
"$folder/venv/bin/pip" install --quiet "$wheel"
echo "$(. /etc/os-release; echo "$PRETTY_NAME"), $tag: installed in $SECONDS s"
cd "$folder"

# Runs a command of the reader and prints its seconds.
timed() {
  local begin_ms=$(($(date +%s%N) / 1000000))
  "$folder/venv/bin/$@" >output.txt 2>&1 || { cat output.txt >&2; exit 1; }
  took_ms=$(($(date +%s%N) / 1000000 - begin_ms))
  printf '%s.%03d s  %s, %s lines\n' $((took_ms / 1000)) $((took_ms % 1000)) "$*" \
    "$(wc -l <output.txt)"
}

timed towpath expect all_reduce --machine dgx-h100 --hosts 1 --sizes 8:64M:8
[ "$took_ms" -le $((limit_s * 1000)) ] || { echo "took more than $limit_s s" >&2; exit 1; }
timed towpath expect all_reduce --machine dgx-h100 --hosts 2
timed towpath show dgx-h100 --svg cluster.svg
timed towpath run all_reduce --machine t3000 --sizes 4K
timed python -c "import towpath; print(towpath.load('wormhole').show())"
timed towpath version --environment

# Without a compiler, a kernel ends in one sentence.
printf '#include <cstdio>\nint main() {}\n' >kernel.cu
if "$folder/venv/bin/towpath" kernel run kernel.cu --machine dgx-h100 >output.txt 2>&1; then
  echo "a kernel was compiled without a compiler" >&2
  exit 1
fi
cat output.txt
[ "$(wc -l <output.txt)" = 1 ]
grep -q "g++" output.txt
