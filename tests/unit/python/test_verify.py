# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The verifier on schedules that others have published."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inside.core import FindingKind, element_granularity, smallest_hanging_size, verify
from inside.schedules import load_schedule

REPOSITORY = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("TOWPATH_DATA", REPOSITORY.parent / "shared" / "data"))
PUBLISHED = sorted((DATA / "schedules" / "azure").glob("*.xml"))

needs_data = pytest.mark.skipif(not PUBLISHED, reason="no published schedules in $TOWPATH_DATA")
published = pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.name)

FLOAT_BYTES = 4


def elements_near(schedule, size_bytes: int) -> int:
    granularity = element_granularity(schedule)
    return max(size_bytes // FLOAT_BYTES // granularity, 1) * granularity


@needs_data
@published
@pytest.mark.parametrize("size_bytes", [1, 1 << 20, (1 << 24) + 4096, 1 << 30])
def test_published_schedules_are_right_at_every_size(path: Path, size_bytes: int):
    schedule = load_schedule(path)
    verdict = verify(schedule, elements_near(schedule, size_bytes), FLOAT_BYTES)
    assert [finding.sentence for finding in verdict.findings] == []
    assert verdict.is_correct()
    assert verdict.not_checked == []


@needs_data
@published
def test_published_schedules_never_hang(path: Path):
    assert smallest_hanging_size(load_schedule(path), FLOAT_BYTES, 1 << 40) is None


@needs_data
@published
def test_a_published_schedule_that_sends_another_chunk_is_not_right(path: Path):
    schedule = load_schedule(path)
    ranks = schedule.ranks
    blocks = ranks[0].blocks
    block = next(i for i, block in enumerate(blocks) if block.send_peer >= 0 and block.steps)
    sender = blocks[block]
    last = max(i for i, step in enumerate(sender.steps) if "send" in step.type.name)
    step = sender.steps[last]
    step.destination_chunk += 1
    step.source_chunk += 1
    steps = sender.steps
    steps[last] = step
    sender.steps = steps
    blocks[block] = sender
    ranks[0].blocks = blocks
    schedule.ranks = ranks
    verdict = verify(schedule, elements_near(schedule, 1 << 16), FLOAT_BYTES)
    assert not verdict.is_correct()
    assert isinstance(verdict.findings[0].kind, FindingKind)
    assert verdict.findings[0].sentence
