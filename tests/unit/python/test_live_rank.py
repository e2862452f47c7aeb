# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What a live rank makes of the times that it measures."""

import random

import numpy as np
import pytest

from inside.live import _percentiles


@pytest.mark.parametrize("calls", [1, 2, 3, 20, 101, 1000])
def test_percentiles_are_those_of_numpy(calls):
    chance = random.Random(calls)
    times_us = [chance.expovariate(0.1) for _ in range(calls)]
    expected = np.percentile(times_us, (0, 25, 50, 75, 99, 100))
    assert _percentiles(times_us) == pytest.approx(expected)
