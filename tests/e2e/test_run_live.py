# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath run COLLECTIVE --live`: without a schedule by default, with one where it is named."""

import pytest

import towpath
from inside.live import DIRECT_COLLECTIVES

FEW = {"iterations": 2, "warmup": 0}


@pytest.mark.parametrize("collective", DIRECT_COLLECTIVES)
def test_by_default_ranks_read_what_the_others_show(collective):
    root = 1 if collective in ("reduce", "broadcast") else 0
    result = towpath.run_live(collective, ranks=3, size_bytes=["3K", "3M"], root=root, **FEW)
    assert [row.algorithm for row in result.rows] == ["direct", "direct"]
    assert result.wrong == 0
    assert "direct: no schedule" in result.notes[0]


@pytest.mark.parametrize(
    "options", [{"algorithm": "ring"}, {"protocol": "LL"}, {"channels": 2}], ids=str
)
def test_options_of_schedules_run_a_schedule(options):
    result = towpath.run_live("all_reduce", ranks=2, size_bytes="4K", **FEW, **options)
    assert result.rows[0].algorithm == "ring_all_reduce" and result.wrong == 0


def test_a_collective_that_needs_a_schedule_gets_one():
    result = towpath.run_live("gather", ranks=2, size_bytes="4K", **FEW)
    assert result.rows[0].algorithm == "direct_gather" and result.wrong == 0
