# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Live collectives: calls, options and the processes that measure them."""

from towpath.collectives import live
from towpath.collectives.live import (
    DIRECT_COLLECTIVES,
    LiveCall,
    LiveError,
    LiveOptions,
    measure_calls,
    measuring_ranks,
)
from towpath.collectives.live_arrays import TYPES
from towpath.collectives.live_rank import _percentiles
