# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The registry of formats, and the reading of files with any of them."""

from __future__ import annotations

from collections.abc import Sequence

from towpath.errors import ConfigError
from towpath.operators import (
    chips,
    collect_env,
    flight_recorder,
    inspector,
    nccl_info,
    nccl_tests,
    ras,
    topology,
    watchdog,
)
from towpath.operators.observed import Document, Observed, Reader, one_by_one

_OF_JOBS = (nccl_tests, ras, topology, chips, collect_env)
# A job writes a file per rank or per host in these formats, so their files are compared.
_OF_RANKS = (nccl_info, inspector, watchdog, flight_recorder)
READERS = (
    *(Reader(each.NAME, each.recognizes, one_by_one(each.read)) for each in _OF_JOBS),
    *(Reader(each.NAME, each.recognizes, each.read) for each in _OF_RANKS),
)


def read_documents(documents: Sequence[Document]) -> Observed:
    """Reads all formats in the files of a job.

    Args:
        documents: the files.

    Raises:
        ConfigError: a file has no known format, or its content is wrong.
    """
    contained: dict[Reader, list[Document]] = {reader: [] for reader in READERS}
    for document in documents:
        if not document.data.strip():
            raise ConfigError("is empty", file=document.file)
        fitting = [reader for reader in READERS if reader.recognizes(document)]
        if not fitting:
            names = ", ".join(reader.name for reader in READERS)
            problem = f"has none of the known formats: {names}"
            raise ConfigError(problem, file=document.file, line=1)
        for reader in fitting:
            contained[reader].append(document)
    found = Observed()
    for reader, own in contained.items():
        if own:
            found.add(reader.read(own))
    found.make_printable()
    return found
