# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The NoC study's points, what cores do at them, and what is made of a simulation."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside.noc import (
    PATTERNS,
    POINT_FLIT_HOPS,
    POINT_FLIT_HOPS_MAX,
    Coordinate,
    StudyRequest,
    bandwidth_programs,
    class_programs,
    class_streams,
    destinations,
    flit_hops,
    flow_control_programs,
    measure_point,
    stalled_vcs_programs,
    study_parts,
    throttle_programs,
)
from traffic_example import ISSUE_CYCLES, LATENCY_CYCLES, WORMHOLE, install, transactions

SIZES_BYTES = tuple(32 << power for power in range(13))
REQUEST = StudyRequest(patterns=PATTERNS, sizes_bytes=SIZES_BYTES)


def point(**fields):
    usual = {
        "experiment": "bandwidth", "pattern": "all_to_all", "noc": 0, "size_bytes": 64, "vcs": 1,
        "turned": False, "per_destination": 4, "asked_per_destination": 4, "grid": "8x8", "seed": 1,
    }  # fmt: skip
    return {**usual, **fields}


# --- points ---------------------------------------------------------------------------------------


def test_the_study_is_every_choice_once():
    small = replace(REQUEST, sizes_bytes=SIZES_BYTES[:9])
    points = study_parts(WORMHOLE, small)["patterns"]
    chosen = {(p["pattern"], p["noc"], p["size_bytes"], p["vcs"]) for p in points}
    assert len(points) == len(chosen) == 6 * 2 * 9 * 4
    assert json.loads(json.dumps(points)) == points


@pytest.mark.parametrize(
    ("pattern", "targets", "each"),
    [("one_to_one", 1, 256), ("one_to_all", 63, 256), ("all_to_all", 64, 256)],
)
def test_every_destination_gets_all_transactions(pattern, targets, each):
    request = replace(REQUEST, patterns=(pattern,), sizes_bytes=(32,), has_follow_ups=False)
    points = study_parts(WORMHOLE, request)["patterns"]
    assert {p["per_destination"] for p in points} == {each}
    sent = transactions(bandwidth_programs(WORMHOLE, points[0])[0].steps)
    assert len(sent) == targets * each


def test_a_point_beyond_its_budget_keeps_a_transaction_on_each_vc_or_is_left_out():
    points = study_parts(WORMHOLE, REQUEST)["patterns"]
    large = [p for p in points if p["pattern"] == "all_from_all" and p["size_bytes"] >= 8192]
    assert {(p["size_bytes"], p["per_destination"]) for p in large} == {
        (8192, 4), (16384, 4), (32768, 4),
    }  # fmt: skip
    assert {p["size_bytes"] for p in points if p["pattern"] == "one_from_all"} == set(SIZES_BYTES)


def test_reduced_points_are_measured_again_with_four_times_as_many_transactions():
    points = study_parts(WORMHOLE, REQUEST)["agreement"]
    pairs = list(zip(points[::2], points[1::2], strict=True))
    assert len(pairs) == 2 * 2 * 2
    for point_, larger in pairs:
        assert larger == {**point_, "per_destination": 4 * point_["per_destination"]}


def test_parts_can_be_left_out():
    parts = study_parts(WORMHOLE, replace(REQUEST, has_follow_ups=False))
    assert list(parts) == ["patterns", "agreement"]
    follow_ups = study_parts(WORMHOLE, replace(REQUEST, has_study=False))
    assert "patterns" not in follow_ups and all(follow_ups.values())


def test_a_small_grid_has_no_stalled_vcs():
    assert study_parts(WORMHOLE.cropped(4, 4), REQUEST)["stalled_vcs"] == []


def test_no_point_exceeds_its_budget_but_to_use_every_vc():
    for part, own in study_parts(WORMHOLE, REQUEST).items():
        for p in own:
            assert flit_hops(WORMHOLE, p) <= POINT_FLIT_HOPS_MAX
            if part == "patterns" and p["per_destination"] > 4:
                assert flit_hops(WORMHOLE, p) <= POINT_FLIT_HOPS
            if p.get("per_destination", 0) < p.get("asked_per_destination", 0):
                more = {**p, "per_destination": p["per_destination"] + 1}
                assert flit_hops(WORMHOLE, more) > POINT_FLIT_HOPS


def test_all_of_wormhole_is_less_than_ten_minutes_of_two_cores():
    points = {json.dumps(p): p for own in study_parts(WORMHOLE, REQUEST).values() for p in own}
    # At 20 M flit-hops per second and core.
    assert sum(flit_hops(WORMHOLE, p) for p in points.values()) < 600 * 2 * 20e6


# --- traffic --------------------------------------------------------------------------------------


def test_each_noc_goes_one_way_round():
    begin, end = Coordinate(1, 1), Coordinate(4, 2)
    # Between n routers there are n - 1 links.
    assert WORMHOLE.hops(0, begin, end) == 3 + 1 + 1
    assert WORMHOLE.hops(1, begin, end) == 7 + 11 + 1
    assert WORMHOLE.hops(0, end, begin) == 7 + 11 + 1
    assert WORMHOLE.hops(0, begin, begin) == 1


def column_by_column(shape):
    return sorted(shape.workers, key=lambda core: (core.x, core.y))


def test_patterns_have_the_masters_and_destinations_of_the_study():
    first, workers = WORMHOLE.workers[0], column_by_column(WORMHOLE)
    assert workers[:2] == [Coordinate(1, 1), Coordinate(1, 2)]
    assert destinations(WORMHOLE, "one_to_one") == {first: [Coordinate(2, 2)]}
    assert destinations(WORMHOLE, "one_from_all") == {first: workers[1:]}
    assert destinations(WORMHOLE, "all_to_all") == {master: workers for master in workers}
    assert destinations(WORMHOLE, "loopback") == {first: [first]}


def test_a_grid_is_the_upper_left_of_the_workers():
    assert WORMHOLE.cropped(5, 2).workers == tuple(
        Coordinate(x, y) for y in (1, 2) for x in (1, 2, 3, 4, 6)
    )


@given(st.integers(1, 9), st.integers(1, 4), st.sampled_from(["one_to_all", "all_from_all"]))
def test_the_ith_transaction_to_a_destination_uses_vc_i_modulo_their_number(each, vcs, pattern):
    small = WORMHOLE.cropped(3, 2)
    where = point(pattern=pattern, per_destination=each, vcs=vcs)
    for program in bandwidth_programs(small, where):
        sent = transactions(program.steps)
        targets = destinations(small, pattern)[program.core]
        assert [vc for _, _, vc, _ in sent] == [i % vcs for i in range(each)] * len(targets)
        assert [to for _, to, _, _ in sent] == [to for to in targets for _ in range(each)]


@pytest.mark.parametrize(("pattern", "kind"), [("one_to_all", "write"), ("one_from_all", "read")])
def test_a_program_ends_with_the_barrier_of_its_kind(pattern, kind):
    (program,) = bandwidth_programs(WORMHOLE, point(pattern=pattern))
    assert {step.kind for step in program.steps[:-1]} == {kind}
    assert program.steps[-1].kind == f"{kind}_barrier"


def test_randomised_order_is_the_formula_of_the_study():
    # destination (j + 9 y + x) % n and VC (i + 9 y + x) % vcs, i anew for each destination.
    for program in bandwidth_programs(WORMHOLE, point(turned=True, vcs=4, per_destination=4)):
        x, y = program.core
        expected = [
            (column_by_column(WORMHOLE)[(j + 9 * y + x) % 64], (i + 9 * y + x) % 4)
            for j in range(64)
            for i in range(4)
        ]
        assert [(to, vc) for _, to, vc, _ in transactions(program.steps)] == expected


def test_credits_go_back_along_every_stream_on_the_vc_asked_for():
    for placement, vc in (("own_vc", 2), ("data_vc", 1)):
        where = point(message="atomic", placement=placement)
        programs = flow_control_programs(WORMHOLE, where)
        data = {p.core: transactions(p.steps) for p in programs if p.steps[0].kind == "write"}
        assert len(data) == 32 and len(programs) == 64
        for program in programs:
            if program.core not in data:
                sent = transactions(program.steps)
                assert {(kind, used) for kind, _, used, _ in sent} == {("atomic", vc)}
                (sender,) = {to for _, to, _, _ in sent}
                assert {to for _, to, _, _ in data[sender]} == {program.core}
                assert {used for _, _, used, _ in data[sender]} == {1}
    alone = flow_control_programs(WORMHOLE, point(message="atomic", placement="alone"))
    assert {p.steps[1].kind for p in alone} == {"atomic"}


def test_throttled_cores_issue_once_per_interval():
    where = point(interval_cycles=500, vcs=4, per_destination=1)
    program = throttle_programs(WORMHOLE, where)[3]
    kinds = [step.kind for step in program.steps]
    assert kinds == ["wait_until", "write"] * 64 + ["write_barrier"]
    assert [s.fields["cycle"] for s in program.steps[:-1:2]] == [500 * k for k in range(64)]
    assert {to for _, to, _, _ in transactions(program.steps)} == set(WORMHOLE.workers)


def test_stalled_flows_share_the_row_with_the_free_one_but_not_its_vc():
    programs = stalled_vcs_programs(WORMHOLE, {"stalled": 3, "rows": 8})
    free, stalled = programs[0], [p for p in programs[1:] if p.core.y == 1]
    assert {vc for _, _, vc, _ in transactions(free.steps)} == {3}
    ends = transactions(free.steps)[0][1]
    for k, program in enumerate(stalled):
        _, to, vc, _ = transactions(program.steps)[0]
        assert (vc, program.core.x < free.core.x < ends.x < to.x) == (k, True)
        joined = [p.core for p in programs if p is not program and p.steps[0] and
                  transactions(p.steps)[0][1:3] == (to, vc)]  # fmt: skip
        assert joined == [Coordinate(to.x, y) for y in (2, 3, 4, 7, 8, 9)]


@pytest.mark.parametrize("noc", [0, 1])
@pytest.mark.parametrize(
    ("other", "end"), [("dram", WORMHOLE.dram), ("ethernet", WORMHOLE.ethernet)]
)
def test_classes_of_traffic_share_the_links_of_a_line(noc, other, end):
    streams = class_streams(WORMHOLE, noc, other)
    beside, to_l1 = [s for s in streams if s.is_other], [s for s in streams if not s.is_other]
    assert {s.to for s in beside} < set(end) and {s.to for s in to_l1} < set(WORMHOLE.workers)
    assert len({s.core for s in streams}) == 5
    far = [WORMHOLE.hops(noc, s.core, beside[0].to) for s in streams]
    assert far[0] > far[3] > far[1] > far[4] > far[2]
    for placement, vcs in (("data_vc", {1}), ("own_vc", {1, 3})):
        programs = class_programs(WORMHOLE, {"noc": noc, "other": other, "placement": placement})
        assert {vc for p in programs for _, _, vc, _ in transactions(p.steps)} == vcs


def test_debug_data_goes_where_production_data_goes():
    assert len({stream.to for stream in class_streams(WORMHOLE, 0, "debug")}) == 1
    assert class_streams(WORMHOLE.cropped(4, 4), 0, "debug") == []


# --- cost -----------------------------------------------------------------------------------------


def test_cost_counts_headers_and_what_comes_back():
    # 16 KiB are 512 flits in 2 packets; to (2, 2) it is 2 links and 3 routers, back 20 and 21.
    write = point(pattern="one_to_one", size_bytes=1 << 14, per_destination=3)
    assert flit_hops(WORMHOLE, write) == 3 * (514 * 3 + 2 * 21)
    read = point(pattern="one_from_one", size_bytes=1 << 14, per_destination=3)
    assert flit_hops(WORMHOLE, read) == 3 * (514 * 21 + 2 * 3)


def test_cost_of_a_pattern_is_the_sum_over_what_its_programs_send():
    where = point(pattern="all_to_all", noc=1, size_bytes=96, per_destination=2, vcs=3)
    total = 0
    for program in bandwidth_programs(WORMHOLE, where):
        for _, to, _, _ in transactions(program.steps):
            there = WORMHOLE.hops(1, program.core, to)
            total += 4 * there + WORMHOLE.hops(1, to, program.core)
    assert flit_hops(WORMHOLE, where) == total


# --- measuring ------------------------------------------------------------------------------------


def test_bandwidth_is_a_masters_bytes_over_its_cycles(monkeypatch):
    install(monkeypatch)
    result = measure_point("", point(size_bytes=320, per_destination=2, grid="4x2", seed=7))
    cycles = 8 * 2 * (ISSUE_CYCLES + 10) + LATENCY_CYCLES
    rate = round(8 * 2 * 320 / cycles, 4)
    assert result == {
        "bandwidth_bytes_per_cycle": rate, "bandwidths_bytes_per_cycle": [rate] * 8,
        "cycles": cycles, "flit_hops": 7,
    }  # fmt: skip


def test_messages_count_while_every_stream_runs(monkeypatch):
    install(monkeypatch)
    where = {"experiment": "flow_control", "noc": 0, "message": "atomic", "grid": "8x8", "seed": 1}
    alone = measure_point("", {**where, "placement": "alone"})
    assert (alone["messages"], alone["data_bandwidth_bytes_per_cycle"]) == (32 * 16, 0)
    # A stream takes 64 (20 + 256) + 100 = 17764 cycles; messages are issued at 0, 4096, ... 16384.
    beside = measure_point("", {**where, "placement": "own_vc"})
    assert beside["messages"] == 32 * 5
    assert beside["latency_median_cycles"] == beside["latency_max_cycles"] == LATENCY_CYCLES
    assert beside["data_bandwidth_bytes_per_cycle"] == round(64 * 8192 / 17764, 4)


def test_offered_and_accepted_are_told_apart(monkeypatch):
    install(monkeypatch)
    slow = measure_point("", point(experiment="throttle", size_bytes=2048, interval_cycles=1024))
    assert slow["offered_bytes_per_cycle"] == 2
    assert slow["bandwidth_bytes_per_cycle"] == pytest.approx(2, rel=0.01)
    assert slow["latency_median_cycles"] == LATENCY_CYCLES
    fast = measure_point("", point(experiment="throttle", size_bytes=2048, interval_cycles=32))
    assert fast["offered_bytes_per_cycle"] == 64
    assert fast["bandwidth_bytes_per_cycle"] == pytest.approx(2048 / (ISSUE_CYCLES + 64), rel=0.01)
    # Of 256 the 128th falls 52 cycles behind for each before it.
    assert fast["latency_median_cycles"] == 128 * (ISSUE_CYCLES + 64 - 32) + LATENCY_CYCLES


def test_classes_count_what_is_delivered_while_every_stream_runs(monkeypatch):
    install(monkeypatch)
    where = {"experiment": "classes", "noc": 0, "other": "debug", "placement": "own_vc"}
    result = measure_point("", {**where, "grid": "8x8", "seed": 1})
    # Streams of 64 packets, all alike; each packet is there 100 cycles after its issue.
    cycles = 64 * (ISSUE_CYCLES + 256) + LATENCY_CYCLES
    assert result["l1_bandwidth_bytes_per_cycle"] == round(2 * 64 * 8192 / cycles, 4)
    assert result["other_bandwidth_bytes_per_cycle"] == round(3 * 64 * 8192 / cycles, 4)


def test_the_free_flow_is_measured_from_when_the_others_stand(monkeypatch):
    install(monkeypatch)
    where = {"experiment": "stalled_vcs", "noc": 0, "rows": 8, "grid": "8x8", "seed": 1}
    result = measure_point("", {**where, "stalled": 0})
    cycles = 16 * (ISSUE_CYCLES + 256) + LATENCY_CYCLES
    assert result["bandwidth_bytes_per_cycle"] == round(16 * 8192 / cycles, 4)
    assert result["stalled_to_the_end"]
    # Without a network the others are not held up, and the first of them end too early.
    assert not measure_point("", {**where, "stalled": 3})["stalled_to_the_end"]
