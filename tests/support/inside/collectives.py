# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated collectives: calls, places to run them, results, link faults and timelines."""

from towpath.api.result import RunResult
from towpath.collectives import fabric, places, simulated
from towpath.collectives.call import Call
from towpath.collectives.element_types import OPERATIONS, operation_named, type_bytes, type_named
from towpath.collectives.engines import ERRORS
from towpath.collectives.gpus import channels_to_fill
from towpath.collectives.link_faults import LinkFault, links_of, parse_link_fault
from towpath.collectives.places import ChipPlace, GpuPlace, MailboxPlace
from towpath.collectives.result import (
    Fold,
    LinkLoad,
    Measurement,
    RunRow,
    Timeline,
    bus_factor,
    measure,
)
from towpath.collectives.simulated import invoke, time_us
from towpath.collectives.threads import on_several_threads, threads_for
from towpath.collectives.timeline import (
    BEGIN_PS,
    BlockTrack,
    busy_per_bin_ps,
    parse_track,
    spans_array,
)
from towpath.specs.sizes import size_of, sizes_of
