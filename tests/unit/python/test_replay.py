# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""From a trace to programs and back, by hand; the simulator is replaced by a fixed latency."""

import json

import pytest

import fake_traffic
from fake_traffic import CALL, LATENCY, POLL, Spec, TrafficStep, chip
from inside.replay import (
    RECORD_CYCLES,
    EndToEnd,
    chip_of,
    dram_channels,
    load_noc_trace,
    programs_of,
    replay,
    replay_module,
    software_gaps,
)
from towpath import ConfigError
from trace_example import event, every_kind, flush, write, zone

CORE = (1, 1)


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    return fake_traffic.install(monkeypatch, replay_module)


def trace_of(folder, events):
    return load_noc_trace(write(folder / "t.json", events), (10, 12))


def reads(cycles, to=(2, 2), core=CORE, processor="BRISC", **fields):
    return [
        event(core, processor, cycle, "READ", to, size_bytes=4096, **fields) for cycle in cycles
    ]


def barrier(begin, end, core=CORE, processor="BRISC", **fields):
    return [
        event(core, processor, begin, "READ_BARRIER_START", **fields),
        event(core, processor, end, "READ_BARRIER_END", **fields),
    ]


def work(cycles):
    return TrafficStep("work", cycle=cycles)


READ = TrafficStep("read", to=(2, 2), size_bytes=4096, has_state=False)
READ_BARRIER = TrafficStep("read_barrier")


# --- the three figures ----------------------------------------------------------------------------


def test_figures_of_a_program_are_those_of_its_processors():
    # Lengths 100, 0 and 151; the median of an even number is rounded down.
    assert EndToEnd.of([(10, 110), (0, 0), (9, 160)]) == EndToEnd(151, 100, 160)
    assert EndToEnd.of([(0, 100), (0, 151)]).median_core == 125


# --- software and waiting -------------------------------------------------------------------------


def test_a_gap_much_longer_than_others_of_its_kind_is_replayed_as_the_usual_one(tmp_path):
    events = [zone(CORE, "BRISC", 0), *reads([200, 340, 520, 1400, 1550]), *barrier(1670, 9000)]
    (gaps,) = software_gaps(trace_of(tmp_path, events))
    # 140, 180, 880 and 150 between reads: 880 is more than 1.6 x 140, the others' median is 150.
    assert gaps[:4] == [140, 180, 150, 150]
    assert gaps[4:] == [120, 7330, 0]  # the barrier's own is no software, and is not used as such


def test_gaps_behind_a_barrier_and_of_other_processors_are_of_other_kinds(tmp_path):
    events = [
        zone(CORE, "BRISC", 0), *reads([200]), *barrier(320, 400), *reads([494]),
        *barrier(610, 900), *reads([2900]),
        zone(CORE, "NCRISC", 0), *reads([200, 700], processor="NCRISC", noc=1),
    ]  # fmt: skip
    brisc, ncrisc = software_gaps(trace_of(tmp_path, events))
    assert brisc == [120, 80, 94, 116, 290, 2000, 0]  # what follows a barrier was no waiting
    assert ncrisc == [500, 0]


def test_a_gap_in_which_the_profiler_wrote_to_memory_is_software(tmp_path):
    events = [
        zone(CORE, "BRISC", 0), *reads([100, 224]), flush(CORE, 400), zone(CORE, "BRISC", 0),
        *reads([528, 652]),
    ]  # fmt: skip
    (gaps,) = software_gaps(trace_of(tmp_path, events))
    assert gaps == [124, 304, 124, 0]


# --- programs -------------------------------------------------------------------------------------


def test_a_core_replays_its_software_and_waits_for_the_simulated_network(tmp_path):
    trace = trace_of(
        tmp_path,
        [zone(CORE, "BRISC", 0), *reads([200, 340]), *barrier(460, 5000), *reads([5094])],
    )
    (own,) = programs_of(trace, chip(), "gaps")
    between = 140 - RECORD_CYCLES - CALL
    assert own.program.core == CORE and own.program.noc == 0 and own.program.start_cycle == 0
    assert own.program.steps == [
        work(200), work(RECORD_CYCLES), READ, work(between), work(RECORD_CYCLES), READ,
        work(120 - RECORD_CYCLES - CALL), work(RECORD_CYCLES), READ_BARRIER,
        work(94), work(RECORD_CYCLES), READ,
    ]  # fmt: skip
    assert own.event_steps == (1, 4, 7, 9, 10)
    assert [request.cycle for request in own.request_events] == [200, 340, 5094]


def test_simulated_events_come_when_software_and_network_let_them(tmp_path):
    trace = trace_of(
        tmp_path,
        [zone(CORE, "BRISC", 0), *reads([200, 340]), *barrier(460, 5000), *reads([5094])],
    )
    result = replay(trace, Spec())
    # The second read is issued at 340 + RECORD_CYCLES, takes CALL and is back LATENCY later.
    done = 340 + RECORD_CYCLES + CALL + LATENCY
    assert result.predicted == EndToEnd(done + 94, done + 94, done + 94)
    assert result.measured == EndToEnd(5094, 5094, 5094)
    first, second, third = result.requests
    assert (first.issued_cycle, first.completed_cycle) == (
        200 + RECORD_CYCLES, 200 + RECORD_CYCLES + CALL + LATENCY,
    )  # fmt: skip
    assert second.issued_cycle == 340 + RECORD_CYCLES
    assert third.issued_cycle == done + 94 + RECORD_CYCLES
    assert (second.kind, second.to, second.size_bytes) == ("READ", (2, 2), 4096)


def test_a_barrier_with_nothing_outstanding_costs_what_recording_it_does(tmp_path):
    trace = trace_of(tmp_path, [zone(CORE, "BRISC", 0), *barrier(104, 188)])
    assert replay(trace, Spec()).predicted.longest_core == 104 + RECORD_CYCLES + POLL


def test_at_the_traced_times_a_call_waits_for_the_one_before_only(tmp_path):
    events = [zone(CORE, "BRISC", 0), *reads([200]), *barrier(320, 500), *reads([5000])]
    trace = trace_of(tmp_path, events)
    (own,) = programs_of(trace, chip(), "times")
    assert own.program.steps == [
        TrafficStep("wait_until", cycle=200), work(RECORD_CYCLES), READ,
        TrafficStep("wait_until", cycle=320), work(RECORD_CYCLES), READ_BARRIER,
        TrafficStep("wait_until", cycle=5000), work(RECORD_CYCLES), READ,
    ]  # fmt: skip
    result = replay(trace, Spec(), pace="times")
    assert result.predicted.longest_core == 5000
    assert replay(trace, Spec()).predicted.longest_core != 5000


def test_a_gap_shorter_than_recording_and_issuing_shortens_the_recording(tmp_path):
    trace = trace_of(tmp_path, [zone(CORE, "BRISC", 0), *reads([100, 150])])
    (own,) = programs_of(trace, chip(), "gaps")
    assert own.program.steps == [work(100), work(30), READ, work(RECORD_CYCLES), READ]


def test_requests_of_two_processors_on_one_noc_are_told_apart_by_their_other_end(tmp_path):
    events = [
        zone(CORE, "BRISC", 0), *reads([100, 400], to=(2, 2)),
        zone(CORE, "NCRISC", 0), *reads([250, 550], to=(3, 3), processor="NCRISC"),
    ]  # fmt: skip
    requests = replay(trace_of(tmp_path, events), Spec()).requests
    assert [(request.processor, request.to) for request in requests] == [
        ("BRISC", (2, 2)), ("NCRISC", (3, 3)), ("BRISC", (2, 2)), ("NCRISC", (3, 3)),
    ]  # fmt: skip


def test_links_show_what_they_carried_in_each_sample(tmp_path):
    trace = trace_of(tmp_path, [zone(CORE, "BRISC", 0), *reads([100]), *barrier(220, 8000)])
    result = replay(trace, Spec(), samples_links=True)
    assert result.link_sample_cycles == 8000 // 200
    assert set(result.link_flits[:, 0, 5]) == {20} and result.link_flits.sum() % 20 == 0
    assert replay(trace, Spec()).link_flits.size == 0


def test_a_processor_without_events_takes_no_time_and_counts(tmp_path):
    events = [zone(CORE, "BRISC", 40), zone(CORE, "NCRISC", 0), *reads([100], processor="NCRISC")]
    result = replay(trace_of(tmp_path, events), Spec())
    assert result.predicted == result.measured == EndToEnd(100, 50, 100)
    assert [core.end_cycle_predicted for core in result.cores] == [40, 100]


def test_every_kind_of_event_becomes_a_step(tmp_path):
    (brisc, ncrisc, other) = programs_of(trace_of(tmp_path, every_kind()), chip(), "gaps")
    to = {"to": (2, 3)}
    assert [step for step in brisc.program.steps if step.kind != "work"] == [
        TrafficStep("write", **to, size_bytes=2048, has_state=False, first_vc=1),
        TrafficStep("write", **to, size_bytes=64, has_state=False),
        TrafficStep("write", **to, size_bytes=512, has_state=True),
        TrafficStep("write", **to, size_bytes=96, has_state=True),
        TrafficStep("inline_write", **to),
        TrafficStep("multicast", to=(4, 3), to_last=(1, 2), first_vc=4, size_bytes=1024),
        TrafficStep("writes_flushed"),
        TrafficStep("write_barrier"),
        TrafficStep("atomic", **to),
        TrafficStep("atomic_barrier"),
    ]
    assert brisc.program.noc == 1
    assert [step for step in ncrisc.program.steps if step.kind != "work"] == [
        TrafficStep("read", **to, size_bytes=4096, has_state=False),
        TrafficStep("read", **to, size_bytes=256, has_state=True),
        TrafficStep("read", to=(0, 1), size_bytes=64, has_state=True, channel=0),
        READ_BARRIER,
        READ_BARRIER,
        READ_BARRIER,
        TrafficStep("write_barrier"),
        TrafficStep("atomic_barrier"),
    ]
    assert [step.kind for step in other.program.steps] == ["work"]
    # Nothing is lost on the way: software alone takes as long as in the trace.
    assert sum(step.cycle for step in other.program.steps) == 110


@pytest.mark.parametrize("noc", [0, 1])
def test_a_multicast_keeps_its_corners(tmp_path, noc):
    corners = {"mcast_start_x": 4, "mcast_start_y": 3, "mcast_end_x": 1, "mcast_end_y": 2}
    events = [event(CORE, "BRISC", 0, "WRITE_MULTICAST", size_bytes=64, noc=noc, **corners)]
    (own,) = programs_of(trace_of(tmp_path, events), chip(), "gaps")
    step = own.program.steps[-1]
    assert (step.to, step.to_last) == ((4, 3), (1, 2))


def test_tiles_of_one_group_are_taken_for_its_channels(tmp_path):
    events = [zone(CORE, "BRISC", 0)]
    tiles = [(0, 11), (0, 1), (5, 9), (5, 2), (0, 6)]
    for place, tile in enumerate(tiles):
        events += reads([100 + place], to=tile)
    channels = dram_channels(trace_of(tmp_path, events), chip())
    assert channels == {(0, 1): 0, (0, 11): 1, (5, 2): 0, (5, 9): 1, (0, 6): 0}


# --- what does not fit ----------------------------------------------------------------------------


def test_no_row_that_a_trace_uses_is_harvested(tmp_path):
    trace = trace_of(tmp_path, reads([0], core=(1, 5)))
    assert list(chip_of(trace, Spec()).harvested) == [11]


def test_a_trace_of_a_larger_chip_is_refused(tmp_path):
    trace = load_noc_trace(write(tmp_path / "t.json", reads([0], to=(16, 2))), (17, 12))
    with pytest.raises(ConfigError, match=r"tile \(16, 2\), but chip 'example' has 10 x 12 tiles"):
        replay(trace, Spec())


def test_a_processor_on_both_nocs_is_a_program_on_each(tmp_path):
    trace = trace_of(tmp_path, reads([0]) + reads([200], noc=1) + reads([400]))
    found = replay(trace, Spec())
    assert sorted(one.noc for one in found.requests) == [0, 0, 1]
    (core,) = found.cores
    assert 0 <= core.end_cycle_predicted - core.end_cycle_measured <= RECORD_CYCLES + CALL


# --- what is shown --------------------------------------------------------------------------------


def test_a_replay_becomes_json_with_errors_per_figure(tmp_path):
    trace = trace_of(tmp_path, [zone(CORE, "BRISC", 0), *reads([100]), *barrier(220, 1300)])
    shown = json.loads(json.dumps(replay(trace, Spec()).to_dict()))
    predicted = 100 + RECORD_CYCLES + CALL + LATENCY
    assert shown["predicted"]["longest_core"] == predicted
    assert shown["error_pct"]["longest_core"] == pytest.approx(100 * (predicted / 1300 - 1))
    assert shown["cores"][0]["end_cycle_measured"] == 1300
    assert shown["requests"][0]["completed_cycle"] == predicted
