# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The calls of a run as dumps of PyTorch's flight recorder and as records of NCCL Inspector."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.collectives.result import Measurement, RunRow
from towpath.files import write_bytes, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION_OF_DUMPS = "2.9"
VERSION_OF_INSPECTOR = "v4.1"
FILE_PREFIX = "nccl_trace_rank_"
# PyTorch's names of collectives and types, and NCCL's names.
_OPERATIONS = {"all_gather": "_all_gather_base", "reduce_scatter": "_reduce_scatter_base"}
_TYPES = {
    "float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "float64": "Double",
    "int8": "Char", "uint8": "Byte", "int32": "Int", "int64": "Long", "uint32": "UInt32",
    "uint64": "UInt64",
}  # fmt: skip
_NCCL = {
    "all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter",
    "broadcast": "Broadcast", "reduce": "Reduce", "all_to_all": "AlltoAll",
    "gather": "Gather", "scatter": "Scatter", "send_recv": "SendRecv",
}  # fmt: skip
# In these collectives, a rank has only a part of the array before or after the call.
_PART_BEFORE = ("all_gather", "gather")
_PART_AFTER = ("reduce_scatter", "scatter")
_TIMEOUT_MS = 600_000


@dataclass(frozen=True)
class Calls:
    """The measured calls of a run, one after the other.

    Attributes:
        collective: its name.
        dtype: the element type.
        ranks: number of ranks.
        host: name of the host or machine.
        rows: a row per size.
    """

    collective: str
    dtype: str
    ranks: int
    host: str
    rows: Sequence[RunRow]

    def measured(self) -> Iterator[tuple[RunRow, Measurement]]:
        """The measurements, size by size, out of place before in place."""
        for row in self.rows:
            for measurement in row.measurements:
                yield row, measurement


def write_dumps(calls: Calls, folder: str | os.PathLike[str]) -> None:
    """Writes a pickle per rank, as PyTorch does with TORCH_NCCL_DEBUG_INFO_TEMP_FILE.

    Args:
        calls: the calls.
        folder: the folder, which is made. A file is named nccl_trace_rank_N.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    group = {"name": "0", "desc": "default_pg", "ranks": str(list(range(calls.ranks)))}
    entries = list(_entries(calls))
    last = len(entries)
    for rank in range(calls.ranks):
        state = {
            "last_enqueued_collective": last, "last_started_collective": last,
            "last_completed_collective": last,
        }  # fmt: skip
        dump = {
            "version": VERSION_OF_DUMPS, "rank": rank, "pg_config": {"0": group},
            "pg_status": {"0": state}, "entries": entries,
        }  # fmt: skip
        write_bytes(place / f"{FILE_PREFIX}{rank}", pickle.dumps(dump, protocol=2))


def _entries(calls: Calls) -> Iterator[dict[str, Any]]:
    """An entry per call. Times begin at 0, so equal runs write equal files."""
    kind = _TYPES.get(calls.dtype, calls.dtype)
    before = calls.ranks if calls.collective in _PART_BEFORE else 1
    after = calls.ranks if calls.collective in _PART_AFTER else 1
    name = f"nccl:{_OPERATIONS.get(calls.collective, calls.collective)}"
    now_ns = 0
    for number, (row, measurement) in enumerate(calls.measured(), 1):
        end_ns = now_ns + round(measurement.time_us * 1e3)
        yield {
            "frames": [], "record_id": number - 1, "pg_id": 0, "process_group": ("0", "default_pg"),
            "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number, "profiling_name": name,
            "time_created_ns": now_ns, "time_discovered_started_ns": now_ns,
            "time_discovered_completed_ns": end_ns, "duration_ms": measurement.time_us / 1e3,
            "input_sizes": [[row.count // before]], "input_dtypes": [kind],
            "output_sizes": [[row.count // after]], "output_dtypes": [kind],
            "state": "completed", "retired": True, "timeout_ms": _TIMEOUT_MS, "is_p2p": False,
        }  # fmt: skip
        now_ns = end_ns


def write_inspector(calls: Calls, path: str | os.PathLike[str]) -> None:
    """Writes a record per call and rank, as JSON lines.

    Args:
        calls: the calls.
        path: the file, which is replaced.
    """
    lines = [
        json.dumps(_record(calls, number, row, measurement, rank))
        for number, (row, measurement) in enumerate(calls.measured(), 1)
        for rank in range(calls.ranks)
    ]
    write_text(Path(path), "\n".join(lines) + "\n")


def _record(
    calls: Calls, number: int, row: RunRow, measurement: Measurement, rank: int
) -> dict[str, Any]:
    # A message of a gather or scatter is the part of one rank.
    parts = calls.ranks if calls.collective in ("all_gather", "reduce_scatter") else 1
    return {
        "header": {"id": "0x1", "rank": rank, "n_ranks": calls.ranks},
        "metadata": {
            "inspector_output_format_version": VERSION_OF_INSPECTOR, "git_rev": "towpath",
            "hostname": calls.host,
        },
        "coll_perf": {
            "coll": _NCCL.get(calls.collective, calls.collective), "coll_sn": number,
            "coll_msg_size_bytes": row.size_bytes // parts,
            "coll_exec_time_us": measurement.time_us, "coll_timing_source": "towpath",
            "coll_algobw_gbs": row.size_bytes / measurement.time_us / 1e3,
            "coll_busbw_gbs": measurement.busbw_gb_per_s,
        },
    }  # fmt: skip
