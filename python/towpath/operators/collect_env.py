# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the output of PyTorch's collect_env: the GPUs and the release of NCCL."""

from __future__ import annotations

import re

from towpath.operators.observed import Document, Observed
from towpath.specs.importers.gpu_models import gpu_in

NAME = "collect_env"
_RELEASE = re.compile(r"(?m)^.{0,80}\bNCCL runtime version\s{0,8}:?\s{0,8}\(?([0-9., ]{3,16})")
_FIRST_LINE = re.compile(r"(?m)^(?:Collecting environment information|PyTorch version: )")


def recognizes(document: Document) -> bool:
    """True if a document contains such output."""
    text = document.text
    is_possible = "Collecting environment information" in text or "PyTorch version: " in text
    return is_possible and _FIRST_LINE.search(text) is not None


def read(document: Document) -> Observed:
    """Reads the GPUs and the release."""
    found = Observed(formats=[NAME])
    model = gpu_in(document.text)
    if model is not None:
        found.gpu = model.name
        found.facts["GPU"] = model.name
    if release := _RELEASE.search(document.text):
        found.facts["NCCL"] = release[1].replace(", ", ".").strip()
    return found
