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
from towpath.operators.diagnosis import Diagnosis, Expectation, compare, conclude, typical
from towpath.operators.nccl_difference import differences
from towpath.operators.observed import FILE_BYTES_MAX, Document, Observed, Timed
from towpath.operators.readers import read_documents
from towpath.specs.importers.gpu_models import machine_of_product
from towpath.studies.progress import Progress, silent
from towpath.validation.accuracy import overall_p90_pct

if TYPE_CHECKING:
    from towpath.api.clusters import GpuCluster


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
    described = machine or _topology_among(observed, documents)
    name = described or machine_of_product(observed.gpu)
    if name is None:
        if observed.times:
            diagnosis.notes.append(_why_nothing_is_expected(observed.gpu))
    elif times or machine is not None:
        _compare(diagnosis, name, hosts, times, progress)
    if described is not None:
        _compare_with_nccl(diagnosis, described, hosts, documents)
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


def _topology_among(observed: Observed, documents: Sequence[Document]) -> str | None:
    """The file of the topology among the files."""
    if "no_gpu" in {each.cause for each in observed.findings}:
        return None
    return next((each.file for each in documents if topology.is_topology(each)), None)


def _why_nothing_is_expected(gpu: str) -> str:
    if not gpu:
        return "the files do not name the machine, so nothing is expected: give --machine NAME"
    return (
        f"no shipped machine is sure to be the servers of '{gpu}', so nothing is expected: give "
        "--machine NAME, or the output of `nvidia-smi topo -m` as a further file"
    )


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

    for log in nccl_log.parse_jobs([each for each in documents if nccl_log.is_log(each)]):
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
        found = differences(log, own)
        diagnosis.observed.findings += [each.printable() for each in found]
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
    libraries = sorted(["nccl", "rccl"], key=lambda name: name != machine.own_library)

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
            error_pct = row.error_pct[1] if row.error_pct else overall_p90_pct(machine.spec)
            algorithm = f"{row.schedule} {row.protocol}"
            return Expectation(way.time_us, way.busbw_gb_per_s, error_pct, is_validated, algorithm)
        _note(diagnosis, f"{timed.collective} is not compared: {problem}")
        return None

    return expect


def _note(diagnosis: Diagnosis, sentence: str) -> None:
    if sentence not in diagnosis.notes:
        diagnosis.notes.append(sentence)
