# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The generated schedules, as Python sees them."""

from __future__ import annotations

import pytest

from inside import _core
from inside.collectives import fabric
from inside.core import Buffer, Collective, Protocol, StepType
from inside.schedules import (
    ROOTED,
    ScheduleFormatError,
    algorithms_within,
    dump_schedule,
    load_schedule,
)


def test_every_algorithm_names_its_collective_and_cost():
    for algorithm in _core.algorithms():
        assert algorithm.name in _core.algorithm_names(algorithm.collective)
        assert algorithm.name.endswith(_core.name_of(algorithm.collective))
        assert algorithm.description and algorithm.cost
    assert len(_core.algorithm_names()) == len(_core.algorithms())


def test_every_collective_has_an_algorithm():
    for collective in Collective:
        assert _core.algorithm_names(collective), collective


def test_algorithms_on_grids_need_a_grid():
    on_grids = {algorithm.name for algorithm in _core.algorithms() if algorithm.needs_grid}
    assert on_grids == {"grid_all_reduce", "grid_all_gather", "grid_reduce_scatter"}
    assert fabric.is_on_grid("grid_all_reduce")
    assert not fabric.is_on_grid("ring_all_reduce") and not fabric.is_on_grid(None)


def test_words_are_those_of_the_enumerations():
    assert tuple(_core.name_of(each) for each in Collective) == _core.COLLECTIVES
    assert tuple(_core.name_of(each) for each in Protocol) == _core.PROTOCOLS
    for name in _core.COLLECTIVES:
        assert _core.collective_from(name).name == name
    assert [_core.name_of(each) for each in StepType] == [each.name for each in StepType]
    assert [_core.name_of(each) for each in Buffer] == ["input", "output", "scratch"]


FIFO = [each.name for each in _core.algorithms() if each.reach == _core.Reach.fifo]


def test_each_collective_begins_with_an_algorithm_for_every_machine():
    for collective in Collective:
        everywhere = algorithms_within(collective.name, (_core.Reach.fifo,))
        assert _core.algorithm_names(collective)[0] == everywhere[0]
        assert set(everywhere) <= set(FIFO)


def test_one_sided_schedule_is_not_exported_to_msccl(tmp_path):
    schedule = _core.make_schedule("nvls_all_gather", ranks=4)
    with pytest.raises(ScheduleFormatError, match="it is a signal, which MSCCL does not have"):
        dump_schedule(schedule, tmp_path / "schedule.xml")
    assert not (tmp_path / "schedule.xml").exists()


@pytest.mark.parametrize("name", FIFO)
def test_generated_schedule_survives_export_and_import(name, tmp_path):
    (collective,) = {each.collective.name for each in _core.algorithms() if each.name == name}
    has_root = collective in ROOTED
    schedule = _core.make_schedule(
        name, ranks=8, channels=2, protocol=Protocol.ll, root=3 if has_root else 0
    )
    if schedule.has_half_blocks:
        with pytest.raises(ScheduleFormatError, match="half of the threads of a block"):
            dump_schedule(schedule, tmp_path / "schedule.xml")
        return
    dump_schedule(schedule, tmp_path / "schedule.xml")
    assert load_schedule(tmp_path / "schedule.xml") == schedule


def test_schedule_of_three_hosts_takes_their_rings():
    rings = _core.rail_rings(3, 4, 2)
    schedule = _core.make_schedule("ring_all_gather", ranks=12, channels=2, rings=rings)
    _core.check_structure(schedule)
    for channel, ring in enumerate(rings):
        for rank, successor in zip(ring, ring[1:] + ring[:1], strict=True):
            assert schedule.rank(rank).blocks[channel].send_peer == successor


def test_ring_too_long_for_msccl_is_not_exported(tmp_path):
    schedule = _core.make_schedule("ring_all_reduce", ranks=129)
    with pytest.raises(ScheduleFormatError, match="it has 257 steps; MSCCL supports at most 256"):
        dump_schedule(schedule, tmp_path / "schedule.xml")
    assert not (tmp_path / "schedule.xml").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ranks": 0}, "ranks is 0; it must be 1 to 262144"),
        ({"ranks": 4, "root": 4}, "root is 4; it must be 0 for all_reduce, which has no root"),
        ({"ranks": 4, "root": -1}, "root is -1; it must be 0 for all_reduce"),
        ({"ranks": 4, "channels": 65}, "channels is 65; it must be 1 to 64"),
        ({"ranks": 4, "gpus_per_host": 3}, "gpus_per_host is 3; 4 ranks are not a multiple of it"),
        ({"ranks": 4, "columns": 5}, "columns is 5; it must be 0 to 4"),
        ({"ranks": 8, "columns": 3}, "columns is 3; 8 ranks are not a multiple of it"),
        ({"ranks": 2, "rings": [[0, 0]]}, "the ring of channel 0 has rank 0 twice"),
        ({"ranks": 2, "rings": [[0, 2]]}, "the ring of channel 0 has rank 2, which does not"),
    ],
)
def test_impossible_options_are_refused_in_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        _core.make_schedule("ring_all_reduce", **options)


def test_a_schedule_that_is_written_out_is_refused_where_it_is_too_large():
    with pytest.raises(ValueError, match=r"ranks \* ranks \* channels must be at most 67108864"):
        _core.make_schedule("two_shot_all_reduce", ranks=65_536)


def test_unknown_algorithm_is_refused_with_those_that_exist():
    with pytest.raises(
        ValueError, match="no algorithm 'butterfly'; choose one of ring_all_reduce,"
    ):
        _core.make_schedule("butterfly", ranks=2)


def test_schedules_are_values():
    schedule = _core.make_schedule("ring_all_reduce", ranks=2)
    twin = _core.make_schedule("ring_all_reduce", ranks=2)
    assert schedule == twin
    assert _core.fingerprint(schedule) == _core.fingerprint(twin)
    twin.ranks[0].blocks[0].add_step(_core.Step(StepType.nop))  # to a copy, which goes away
    assert schedule == twin
    changed = twin.step(0, 0, 0)
    changed.source = Buffer.output
    assert schedule == twin
    twin.set_step(0, 0, 0, changed)
    assert schedule != twin
    assert _core.fingerprint(schedule) != _core.fingerprint(twin)


def test_place_outside_the_schedule_is_an_index_error():
    schedule = _core.make_schedule("ring_all_reduce", ranks=2)
    for place in [(2, 0, 0), (0, 1, 0), (0, 0, 3)]:
        with pytest.raises(IndexError, match="does not exist"):
            schedule.step(*place)


def test_chunking_of_ragged_parts():
    # 3 ranks of 5 elements each in 2 chunks: 3 and 2.
    schedule = _core.make_schedule("ring_all_gather", ranks=3, channels=2)
    chunking = _core.Chunking(schedule, elements=15, element_bytes=4)
    assert chunking.part_elements == 5
    assert chunking.chunk_elements == 3
    second = chunking.range(Buffer.output, chunk=3, count=1)
    assert (second.offset, second.count) == (8, 2)
    with pytest.raises(ValueError, match="cannot divide 16 elements; use a positive multiple"):
        _core.Chunking(schedule, elements=16, element_bytes=4)
    with pytest.raises(ValueError, match="element_bytes is 0"):
        _core.Chunking(schedule, elements=15, element_bytes=0)


def test_chunking_of_a_schedule_without_ranks_is_refused():
    schedule = _core.Schedule("none", Collective.all_gather)
    with pytest.raises(_core.ScheduleError, match="it has no ranks; it needs at least 1"):
        _core.Chunking(schedule, elements=1, element_bytes=4)
