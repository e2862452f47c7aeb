# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The causes behind warnings of NCCL and of its network plug-ins."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from towpath.operators.finding import Evidence, Finding
from towpath.operators.nccl_log import NcclLog


@dataclass(frozen=True)
class _Warning:
    """A form of warning: its cause, a sentence, and the confidence of the cause.

    `{0}` in the sentence is the first group of the form.
    """

    cause: str
    form: re.Pattern[str]
    sentence: str
    confidence: float = 0.95


def _warning(cause: str, form: str, sentence: str, confidence: float = 0.95) -> _Warning:
    return _Warning(cause, re.compile(form), sentence, confidence)


# The first cause is nearest to the origin: a process without memory ends, and its peers then lose
# their connections.
_WARNINGS = (
    _warning(
        "nvls_memory",
        r"(?:nvls\.cc:|NVLink SHARP).{0,160}out of memory",
        "no memory of a GPU is left for NVLink SHARP", 0.97,
    ),
    _warning(
        "gpu_memory", r"Cuda failure.{0,8}'out of memory'|Failed to CUDA (?:m|c)alloc",
        "NCCL cannot allocate memory on a GPU", 0.97,
    ),
    _warning(
        "same_gpu", r"Duplicate GPU detected : (rank [0-9]{1,7} and rank [0-9]{1,7})",
        "{0} use one GPU", 0.97,
    ),
    _warning(
        "fabric_manager",
        r"nvls\.cc:.{0,60}Cuda failure|bind NVLink SHARP|system not yet initialized",
        "a GPU cannot join the multicast group of the NVSwitches",
    ),
    _warning(
        "imex", r"MNNVL .{0,40}available but not working", "NVLinks between hosts do not work",
    ),
    _warning(
        "shared_memory",
        r"fallocate failed|shared memory segment|to extend /dev/shm|create shared memory file",
        "a segment of shared memory cannot be created",
    ),
    _warning(
        "locked_memory", r"ibv_reg_mr\w{0,10} failed with error Cannot allocate memory",
        "an adapter cannot register memory",
    ),
    _warning(
        "registration", r"ibv_reg_(?:dmabuf_)?mr\w{0,10} failed with error ([A-Za-z ]{1,40})",
        "an adapter cannot register memory ({0})",
    ),
    _warning(
        "interface",
        r"no socket interface found|No usable listening interface|no device found matching",
        "no network interface fits NCCL_SOCKET_IFNAME",
    ),
    _warning(
        "version", r"connecting to address .{0,60}with family [0-9]{1,9} is neither",
        "a rank sends an address in another form", 0.8,
    ),
    _warning("version", r"Mismatched NCCL version detected", "NCCL reports different releases"),
    _warning(
        "p2p_off", r"P2P is disabled between (?:NVLINK )?connected GPUs ([0-9]+ and [0-9]+)",
        "GPUs {0} are joined, but cannot access each other",
    ),
    _warning(
        "network_error",
        r"Got completion .{0,80}(?:error|status)|No route to host|Net Device Down|"
        r"Connection (?:refused|reset|timed out)|transport retry|ibv_(?!reg_)\w{1,30} failed|"
        r"NET/IB.{0,40}(?:async|fatal) event",
        "the network reports errors", 0.9,
    ),
    _warning(
        "dead_rank", r"Connection closed by remote peer ?(\S{0,80})",
        "the peer {0} closed its connection, so its process ended", 0.85,
    ),
)  # fmt: skip


def causes_of_warnings(log: NcclLog) -> Iterator[Finding]:
    """A finding for each cause, with its first lines. The first form of a line is its cause."""
    lines_of: dict[int, list[tuple[Evidence, re.Match[str]]]] = defaultdict(list)
    for line in log.warnings:
        matches = ((number, each.form.search(line.text)) for number, each in enumerate(_WARNINGS))
        number, match = next(((n, found) for n, found in matches if found), (0, None))
        if match is not None:
            lines_of[number].append((line, match))
    found: set[str] = set()
    for number, lines in sorted(lines_of.items()):
        each = _WARNINGS[number]
        if each.cause in found:
            continue
        found.add(each.cause)
        first = lines[0][1]
        sentence = each.sentence.format(first[1] if first.re.groups else "").replace("  ", " ")
        times = f" ({len(lines)} warnings)" if len(lines) > 1 else ""
        evidence = tuple(line for line, _ in lines[:2])
        yield Finding(each.cause, sentence + times, evidence, each.confidence)
