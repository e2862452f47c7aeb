#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# In a bare root: installs what the tutorials ask for, follows each from the wheel in dist/, and
# prints the seconds of each command. $TOWPATH_TORCH names the version of torch.
set -euo pipefail
cd "$(dirname "$0")/.."
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  python3 python3-dev python3-venv g++ >/dev/null
tag=$(python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
wheel=$(ls dist/towpath-*-"$tag"-"$tag"-manylinux*_x86_64.whl)
folder=$(mktemp -d)
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "$wheel"
cp -r docs tools/follow_tutorial.py "$folder"
cd "$folder"
for page in docs/own_machine.md docs/tutorial_*.md; do
  if grep -q "import torch" "$page"; then
    venv/bin/pip install --quiet "torch==${TOWPATH_TORCH:-2.13.0}" numpy
  fi
  echo "$page"
  SECONDS=0
  venv/bin/python follow_tutorial.py "$page"
  echo "$page: as printed, $SECONDS s"
done
