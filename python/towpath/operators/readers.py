# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The registry of formats, and the reading of files with any of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from towpath.errors import ConfigError
from towpath.operators import (
    chips,
    flight_recorder,
    inspector,
    nccl_info,
    nccl_tests,
    ras,
    topology,
    watchdog,
)
from towpath.operators.observed import Document, Observed, Reader
from towpath.specs.importers.gpu_models import gpu_in

FILE_BYTES_MAX = 512 << 20
READERS = tuple(
    Reader(module.NAME, module.recognizes, module.read)
    for module in (
        nccl_tests, nccl_info, inspector, ras, watchdog, flight_recorder, topology, chips,
    )
)  # fmt: skip
_RELEASE = re.compile(r"(?m)^.{0,80}\bNCCL runtime version\s{0,8}:?\s{0,8}\(?([0-9., ]{3,16})")
_COLLECT_ENV = re.compile(r"(?m)^(?:Collecting environment information|PyTorch version: )")


def read_documents(documents: Sequence[Document]) -> Observed:
    """Reads all formats in several files, and compares the dumps of ranks.

    Args:
        documents: the files.

    Raises:
        ConfigError: a file has no known format, or its content is wrong.
    """
    found = Observed()
    dumps = []
    for document in documents:
        if not document.data.strip():
            raise ConfigError("is empty", file=document.file)
        fitting = [reader for reader in READERS if reader.recognizes(document)]
        own = _environment(document)
        if not fitting and own is None:
            names = ", ".join(reader.name for reader in READERS)
            problem = f"has none of the known formats: {names}, collect_env"
            raise ConfigError(problem, file=document.file, line=1)
        if own is not None:
            found.add(own)
        for reader in fitting:
            found.add(reader.read(document))
        if flight_recorder.recognizes(document):
            dumps.append(flight_recorder.parse_dump(document))
    found.findings += flight_recorder.compare(dumps)
    return found


def _environment(document: Document) -> Observed | None:
    """Facts of the output of PyTorch's collect_env. None if the document has none."""
    if _COLLECT_ENV.search(document.text) is None:
        return None
    found = Observed(formats=["collect_env"])
    model = gpu_in(document.text)
    if model is not None:
        found.gpu = model.name
        found.facts["GPU"] = model.name
    if release := _RELEASE.search(document.text):
        found.facts["NCCL"] = release[1].replace(", ", ".").strip()
    return found
