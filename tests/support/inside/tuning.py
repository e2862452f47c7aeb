# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The search for the fastest schedule: candidates, choice, export and synthesis."""

from towpath.tuning import answers, chooser, link_bench
from towpath.tuning.affordable import affordable
from towpath.tuning.chooser import Chooser, _told_apart_in_full
from towpath.tuning.climb import Climb
from towpath.tuning.collective import (
    CHUNKS_PER_CHANNEL,
    Options,
    Timing,
    candidates,
    cuts,
    least_us,
    limit_on_line_us,
    limit_with_chance_us,
    line_us,
    with_chance,
)
from towpath.tuning.export import NcclAdvice, check_nccl, check_xml, nccl_lines, ranges, write_xml
from towpath.tuning.link_bench import PACKET_BYTES, LinkBench, channel_counts, steady_points
from towpath.tuning.race import Race
from towpath.tuning.rule import choose, reaches
from towpath.tuning.synthesis.bounds import bound_of
from towpath.tuning.synthesis.network import network_of
from towpath.tuning.synthesis.packing import pack_rings, pack_trees
