# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of a chip's network and their replay."""

from towpath.studies import noc_trace
from towpath.studies import replay as replay_module
from towpath.studies.noc_trace import EVENTS_MAX, FABRIC, KINDS, load_noc_trace
from towpath.studies.replay import (
    PHASES,
    RECORD_CYCLES,
    EndToEnd,
    chip_of,
    dram_channels,
    measured,
    programs_of,
    replay,
    software_gaps,
)
from towpath.studies.replay_folder import replay_folder
