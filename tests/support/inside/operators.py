# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Private names for tests of `towpath doctor` and `towpath job`."""

from towpath.api.doctor import diagnose
from towpath.api.job import read_job

__all__ = ["diagnose", "read_job"]
