# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Private names for tests of `towpath doctor` and `towpath job`."""

from towpath.api.doctor import diagnose
from towpath.api.job import job_times, read_job
from towpath.operators.job import EXTRAPOLATION_ERROR_PCT
from towpath.operators.nccl_difference import differences
from towpath.operators.nccl_log import parse_log
from towpath.operators.observed import Document

__all__ = [
    "EXTRAPOLATION_ERROR_PCT",
    "Document",
    "differences",
    "diagnose",
    "job_times",
    "parse_log",
    "read_job",
]
