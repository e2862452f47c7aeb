# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The answer about files of operators: expected, measured, and the most likely causes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from towpath.api.machine import load
from towpath.errors import ConfigError
from towpath.operators import nccl_log, topology
from towpath.operators.diagnosis import (
    ERROR_ASSUMED_PCT,
    Diagnosis,
    Expectation,
    compare,
    conclude,
    typical,
)
from towpath.operators.nccl_difference import differences
from towpath.operators.observed import Document, Observed, Timed
from towpath.operators.readers import FILE_BYTES_MAX, read_documents
from towpath.specs.importers.gpu_models import gpu_of_product
from towpath.studies.progress import Progress, silent

if TYPE_CHECKING:
    from towpath.api.clusters import GpuCluster

# Clusters of one kind differ by this much among themselves: cables, clocks, tuning.
_ERROR_LEAST_PCT = 20.0
_AMD_MACHINES = {"mi300x": "mi300x"}


def diagnose(
    files: Sequence[str | os.PathLike[str]],
    *,
    machine: str | None = None,
    hosts: int | None = None,
    progress: Progress = silent,
) -> Diagnosis:
    """Reads files of operators and finds the most likely causes of slow and hanging jobs.

    Args:
        files: logs of nccl-tests and NCCL, records of NCCL Inspector, output of ncclras, dumps of
            the flight recorder, lines of the watchdog, topologies and states of adapters.
        machine: the machine for the expected times: a name or a file. The default is the topology
            among the files, or the machine of the GPUs that a log names.
        hosts: number of its hosts. The default follows from the files.
        progress: called with the number of compared sizes.

    Returns:
        The findings, and the measured and expected times.

    Raises:
        ConfigError: a file cannot be read, or there is no such machine.
    """
    documents = [read_document(Path(file)) for file in files]
    observed = read_documents(documents)
    diagnosis = Diagnosis([document.file for document in documents], observed)
    times = typical([each for each in observed.times if each.collective])
    name = machine or _machine_of(observed, documents)
    if name is None:
        if observed.times:
            diagnosis.notes.append(
                "the files do not name the machine, so nothing is expected: give --machine NAME"
            )
    elif times or machine is not None:
        _compare(diagnosis, name, hosts, times, progress)
    if name is not None:
        _compare_with_nccl(diagnosis, name, hosts, documents)
    if len(times) < len(observed.times) and any(not each.collective for each in observed.times):
        diagnosis.notes.append(
            "a table does not name its collective: put it into the name of the file, such as "
            "all_gather.log"
        )
    conclude(diagnosis)
    return diagnosis


def read_document(path: Path) -> Document:
    """Reads a file of an operator.

    Raises:
        ConfigError: it cannot be read, or is too large.
    """
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            problem = f"is larger than {FILE_BYTES_MAX >> 20} MiB, the maximum"
            raise ConfigError(problem, file=str(path))
        return Document.of(str(path), path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path)) from None


def _machine_of(observed: Observed, documents: Sequence[Document]) -> str | None:
    """The topology among the files, or the shipped machine of the GPUs in a log."""
    for document in documents:
        if topology.is_topology(document) and "no_gpu" not in {
            each.cause for each in observed.findings
        }:
            return document.file
    product = observed.gpu.lower()
    for word, name in _AMD_MACHINES.items():
        if word in product:
            return name
    model = gpu_of_product(observed.gpu)
    return None if model is None or model.nvlinks == 0 else model.donor


def _compare(
    diagnosis: Diagnosis, name: str, hosts: int | None, times: list[Timed], progress: Progress
) -> None:
    found = _loaded(name, hosts, diagnosis.observed, times)
    diagnosis.machine = found._where(found.ranks)
    diagnosis.hosts, diagnosis.ranks_per_host = found.hosts, found.ranks_per_host
    diagnosis.drawing = found.draw()
    expect = _predictor(found, diagnosis)
    with progress("expecting", max(len(times), 1)) as update:
        done = 0

        def counted(timed: Timed) -> Expectation | None:
            nonlocal done
            done += 1
            update(done, f"expecting {timed.collective}")
            return expect(timed)

        compare(diagnosis, counted, times)


def _compare_with_nccl(
    diagnosis: Diagnosis, name: str, hosts: int | None, documents: Sequence[Document]
) -> None:
    """Adds the differences of a log of NCCL from the same release itself, if that is built."""
    from towpath.api.nccl import NcclOptions, ask_nccl
    from towpath.collectives.nccl_itself.build import built_releases
    from towpath.collectives.nccl_itself.decide import RANKS_MAX

    for document in documents:
        if not nccl_log.is_log(document):
            continue
        log = nccl_log.parse_log(document)
        release = next(iter(log.versions), "")
        if release not in built_releases():
            if release:
                _note(
                    diagnosis,
                    f"NCCL {release} is not built here: after `towpath nccl build PATH --release "
                    f"{release}` its own decisions are compared with the log",
                )
            continue
        machine = _loaded(name, hosts or log.nodes, diagnosis.observed, [])
        if machine.ranks > RANKS_MAX or machine.ranks != log.ranks:
            continue
        answer = ask_nccl(
            machine, release, "all_reduce", [1 << 26], NcclOptions(), is_connected=True
        )
        own = nccl_log.parse_log(Document.of("NCCL itself", answer.decisions.log.encode()))
        diagnosis.observed.findings += differences(log, own)
        _note(diagnosis, f"compared with NCCL {release} itself on {answer.where}")


def _loaded(name: str, hosts: int | None, observed: Observed, times: list[Timed]) -> GpuCluster:
    """The machine in the size of the measured job."""
    from towpath.api.clusters import GpuCluster

    first = load(name)
    if not isinstance(first, GpuCluster):
        raise ConfigError(f"--machine is a {first.kind}; expected times need a cluster of GPUs")
    ranks = next((each.ranks for each in times if each.ranks), observed.ranks)
    own = first.spec.gpus_per_host
    if ranks is None:
        return first if hosts is None else _sized(name, hosts, None)
    named = len([host for host in observed.hosts if host])
    count = hosts or (named if named and ranks % named == 0 else math.ceil(ranks / own))
    if ranks // count > own:
        count = math.ceil(ranks / own)
    per_host = ranks // count
    return _sized(name, count, per_host if per_host < own else None)


def _sized(name: str, hosts: int, ranks_per_host: int | None) -> GpuCluster:
    from towpath.api.clusters import GpuCluster

    bare = name.partition(":")[0] if not Path(name).exists() else name
    is_topology = Path(bare).is_file() and not bare.endswith((".yaml", ".yml"))
    donor = _donor_of_file(bare) if is_topology else None
    found = load(bare, hosts=hosts, ranks_per_host=ranks_per_host, complete_from=donor)
    assert isinstance(found, GpuCluster)
    return found


def _donor_of_file(file: str) -> str | None:
    """The shipped machine that completes a topology with a fabric."""
    from towpath.specs.importers.own_host import donor_of

    return donor_of(Path(file).read_text(errors="replace"), file)


def _predictor(machine: GpuCluster, diagnosis: Diagnosis) -> Callable[[Timed], Expectation | None]:
    """A function that predicts the time of a row on a machine."""
    libraries = ["rccl", "nccl"] if "mi300" in machine.name else ["nccl", "rccl"]

    def expect(timed: Timed) -> Expectation | None:
        if timed.ranks is not None and timed.ranks != machine.ranks:
            _note(diagnosis, f"rows with {timed.ranks} ranks are not compared")
            return None
        problem = ""
        for library in libraries:
            try:
                result = machine.run(
                    timed.collective, size_bytes=timed.size_bytes, library=library, data=False
                )
            except ConfigError as error:
                problem = problem or str(error)
                continue
            row = result.rows[0]
            way = row.out_of_place or row.in_place
            if way is None:
                return None
            is_validated = row.error_pct is not None
            error_pct = (
                max(row.error_pct[1], _ERROR_LEAST_PCT) if row.error_pct else ERROR_ASSUMED_PCT
            )
            algorithm = f"{row.schedule} {row.protocol}"
            return Expectation(way.time_us, way.busbw_gb_per_s, error_pct, is_validated, algorithm)
        _note(diagnosis, f"{timed.collective} is not compared: {problem}")
        return None

    return expect


def _note(diagnosis: Diagnosis, sentence: str) -> None:
    if sentence not in diagnosis.notes:
        diagnosis.notes.append(sentence)
