#!/bin/sh
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Compiles a CUDA program with NVSHMEM for a GPU, unchanged, and links its device code.
#
#   NVSHMEM_HOME=... tools/gpu_build.sh FILE.cu OUTPUT [FLAGS OF NVCC...]
#
# Where the host's part of NVSHMEM and the driver's library are here, OUTPUT is a program; else
# OUTPUT.o and
# OUTPUT.dlink.o are what could be made.
set -e
source=$1
output=$2
shift 2
arch=${GPU_ARCH:-sm_90}
nvcc -std=c++17 -arch="$arch" -rdc=true -I "$NVSHMEM_HOME/include" "$@" -c "$source" -o "$output.o"
nvcc -arch="$arch" -dlink "$output.o" -L "$NVSHMEM_HOME/lib" -lnvshmem_device -o "$output.dlink.o"
host=$(ls "$NVSHMEM_HOME"/lib/libnvshmem_host.so* 2>/dev/null | head -n 1)
driver=$(ldconfig -p 2>/dev/null | awk '/libcuda\.so/ { print $NF; exit }')
if [ -n "$host" ] && [ -n "$driver" ]; then
  nvcc -arch="$arch" -rdc=true "$output.o" -L "$NVSHMEM_HOME/lib" -lnvshmem_device \
    "-l:$(basename "$host")" -Xlinker "$driver" -Xlinker "-rpath=$NVSHMEM_HOME/lib" -o "$output"
fi
