#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Builds the wheels of HEAD, one for the Python of each Debian, in bare roots: 3.11 in bookworm,
# 3.13 in trixie. They and the source distribution are then in dist/. Needs root and debootstrap.
#
# Usage: tools/wheel.sh [bookworm] [trixie]
# The environment is that of tools/fresh_root.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
export TOWPATH_ROOTS=${TOWPATH_ROOTS:-/var/tmp/towpath_roots}
[ $# -gt 0 ] || set -- bookworm trixie
mkdir -p dist
for suite in "$@"; do
  tools/fresh_root.sh "$suite" tools/build_wheel.sh
  cp "$TOWPATH_ROOTS/$suite"/towpath/dist/* dist/
done
