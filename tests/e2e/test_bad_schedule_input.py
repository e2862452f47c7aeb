# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Spoilt MSCCL files load, or end in one sentence with file and place; nothing else."""

from __future__ import annotations

import re

import pytest

from inside import _core
from inside.schedules import SIZE_MAX_BYTES, ScheduleFormatError, dump_schedule, load_schedule
from mutate import check_mutants, mutant

# What is wrong with a schedule as a whole has no line.
PLACE = ":[0-9]+|: schedule '.*', rank [0-9]+, .*|: schedule '.*'"


def load_twice(path):
    """Loads a schedule, which must survive export and import."""
    schedule = load_schedule(path)
    again = path.with_suffix(".again")
    dump_schedule(schedule, again)
    assert load_schedule(again) == schedule


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Small files with every kind of step."""
    folder = tmp_path_factory.mktemp("schedules")
    for name, ranks in [("ring_all_reduce", 3), ("two_shot_all_reduce", 3), ("ring_reduce", 2),
                        ("all_pairs_all_gather", 3), ("tree_all_reduce", 4)]:  # fmt: skip
        schedule = _core.make_schedule(name, ranks=ranks, channels=2, chunks_per_channel=2)
        dump_schedule(schedule, folder / f"{name}.xml")
    return sorted(folder.glob("*.xml"))


def check(seeds, originals, folder):
    reader = "test_bad_schedule_input:load_twice"
    check_mutants(reader, originals, seeds, folder, seconds_max=10, place=PLACE)


def test_100_spoilt_schedules(originals, tmp_path):
    check(range(100), originals, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 11))
def test_10_000_spoilt_schedules(originals, tmp_path, part):
    check(range(1000 * part, 1000 * (part + 1)), originals, tmp_path)


def test_mutants_are_the_same_for_the_same_seed(originals):
    text = originals[0].read_text(encoding="utf-8")
    assert [mutant(text, seed) for seed in range(50)] == [mutant(text, seed) for seed in range(50)]
    assert len({mutant(text, seed) for seed in range(50)}) > 40


@pytest.mark.parametrize("fragment", [b'a="', b"<!--", b" ", b"<gpu>"])
def test_file_larger_than_the_limit_is_refused(fragment, tmp_path):
    file = tmp_path / "large.xml"
    file.write_bytes((b"<algo " + fragment).ljust(SIZE_MAX_BYTES + 1, b"a"))
    with pytest.raises(ScheduleFormatError) as caught:
        load_schedule(file)
    assert re.match(r"[^\n]*large\.xml:1: [^\n]*\Z", str(caught.value))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe", b"<", b"<algo/>", b"\x00" * 100])
def test_nearly_empty_file_is_refused(content, tmp_path):
    file = tmp_path / "empty.xml"
    file.write_bytes(content)
    with pytest.raises(ScheduleFormatError, match=r"empty\.xml:[0-9]+: ."):
        load_schedule(file)


def test_directory_is_refused(tmp_path):
    with pytest.raises(ScheduleFormatError, match="cannot be read: Is a directory"):
        load_schedule(tmp_path)
