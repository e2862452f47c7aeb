#!/bin/sh
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Builds bench.cu with nvcc, and runs every all-reduce on this machine's GPUs, one process each.
#
#   NVSHMEM_HOME=... penny/gpu_test.sh [RANKS]
#
# It needs nvcc and NVSHMEM: in $NVSHMEM_HOME, or python3's package nvidia-nvshmem-cu13.
set -e
here=$(cd "$(dirname "$0")" && pwd)
ranks=${1:-1}
if [ -z "$NVSHMEM_HOME" ]; then
  packages=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])')
  NVSHMEM_HOME=$packages/nvshmem
fi
export NVSHMEM_HOME
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$here/../tools/gpu_build.sh" "$here/bench.cu" "$folder/bench" "-I$here/include"
for kernel in vectorised_ring simple_ring one_shot two_shot; do
  for type in float half bfloat16; do
    rank=0
    processes=
    while [ "$rank" -lt "$ranks" ]; do
      export CUDA_VISIBLE_DEVICES=$rank PENNY_RANK=$rank PENNY_RANKS=$ranks
      PENNY_ID="$folder/id-$kernel-$type" \
        timeout 120 "$folder/bench" "$kernel" "$type" 65536 256 16 1 3 &
      processes="$processes $!"
      rank=$((rank + 1))
    done
    for process in $processes; do wait "$process"; done
  done
done
echo "all kernels are right"
