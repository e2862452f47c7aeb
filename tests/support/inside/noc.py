# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The study of a chip's network: patterns, programs and findings."""

from towpath.studies import noc_study, noc_traffic
from towpath.studies.noc_findings import findings
from towpath.studies.noc_study import (
    PATTERNS,
    POINT_FLIT_HOPS,
    POINT_FLIT_HOPS_MAX,
    StudyRequest,
    flit_hops,
    measure_point,
    study_parts,
)
from towpath.studies.noc_traffic import (
    ChipShape,
    Coordinate,
    bandwidth_programs,
    class_programs,
    class_streams,
    destinations,
    flow_control_programs,
    shape_of,
    stalled_vcs_programs,
    throttle_programs,
)
