#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Installs the wheels in dist/ into bare roots of Debian without a compiler, runs first commands
# there and prints their seconds. Fails if one fails or if the first takes more than 5 s. Needs
# root and debootstrap.
#
# Usage: tools/wheel_check.sh [bookworm] [trixie]
# The environment is that of tools/fresh_root.sh; the roots are in its folder bare/.
set -euo pipefail
cd "$(dirname "$0")/.."
export TOWPATH_ROOTS=${TOWPATH_ROOTS:-/var/tmp/towpath_roots}/bare
[ $# -gt 0 ] || set -- bookworm trixie
for suite in "$@"; do
  TOWPATH_FILES=$(ls dist/towpath-*.whl)
  export TOWPATH_FILES
  tools/fresh_root.sh "$suite" tools/first_commands.sh
done
