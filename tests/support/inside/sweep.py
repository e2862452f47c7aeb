# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Sweeps over many points, and the processes that measure them."""

from towpath.studies.parallel import ProcessEnded, in_processes, map_in_order
from towpath.studies.sweep import SweepOptions, how_to_resume, name_of, run_sweep
