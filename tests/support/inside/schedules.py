# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules: words, sources and files in the formats of MSCCL and MSCCL++."""

from towpath.api.schedule import Step
from towpath.schedules import files, mscclpp_json
from towpath.schedules.msccl_xml import (
    SIZE_MAX_BYTES,
    ScheduleFormatError,
    dump_schedule,
    load_schedule,
)
from towpath.schedules.mscclpp_json import dump_schedule as dump_plan
from towpath.schedules.mscclpp_json import load_schedule as load_plan
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import (
    ROOTED,
    algorithm_named,
    algorithms_within,
    collective_named,
    protocol_named,
)
