# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of several chips, replayed on the simulated NoCs of each."""

import pytest

from inside.machines import load_chip
from inside.replay import load_noc_trace, replay, replay_folder
from towpath import ConfigError
from trace_example import event, write, zone


def trace_of(folder, events):
    return load_noc_trace(write(folder / "trace.json", events))


def packet(cycle, chip, **changes):
    made = event((1, 1), "BRISC", cycle, "FABRIC_UNICAST_WRITE", size_bytes=1088) | {
        "noc": "NOC_1", "src_device_id": chip,
        "fabric_send": {"eth_chan": 8, "hops": 1},
    }  # fmt: skip
    return made | changes


def test_each_chip_of_a_trace_is_run_by_itself(tmp_path):
    wormhole = load_chip("wormhole")
    alone = trace_of(tmp_path, [packet(100, 0), packet(300, 0)])
    both = trace_of(tmp_path, [packet(100, 0), packet(300, 0), packet(100, 3), packet(300, 3)])
    found, one = replay(both, wormhole), replay(alone, wormhole)
    assert [core.chip for core in found.cores] == [0, 3]
    assert {core.end_cycle_predicted for core in found.cores} == {one.cores[0].end_cycle_predicted}
    assert [request.chip for request in found.requests] == [0, 0, 3, 3]


@pytest.mark.parametrize("end", ["forward", "segment_end"])
def test_a_packet_goes_to_the_router_of_its_channel_or_its_path(tmp_path, end):
    first = {"device": 0, f"{end}_x": 9, f"{end}_y": 6}
    path = {"path": [first, {"device": 1, "segment_start_x": 1, "segment_start_y": 0}]}
    trace = trace_of(tmp_path, [packet(100, 0), packet(300, 0, fabric_send=path)])
    found = replay(trace, load_chip("wormhole"))
    assert [(one.to, one.size_bytes) for one in found.requests] == [((9, 6), 1088)] * 2


def test_a_router_that_the_chip_lacks_is_refused(tmp_path):
    trace = trace_of(tmp_path, [packet(100, 0, fabric_send={"eth_chan": 16})])
    with pytest.raises(ConfigError, match="Ethernet channel 16, but chip 'wormhole' has 16"):
        replay(trace, load_chip("wormhole"))


def test_a_page_of_several_chips_is_refused(tmp_path):
    trace = trace_of(tmp_path, [packet(100, 0), packet(100, 3)])
    with pytest.raises(ConfigError, match="has 2 chips; a page shows one"):
        replay(trace, load_chip("wormhole"), samples_links=True)


@pytest.mark.parametrize("begin", ["begin", "ZONE_START"])
def test_a_mark_without_a_chip_is_of_the_chip_that_its_events_name(tmp_path, begin):
    marks = [zone((1, 1), "BRISC", 0, phase=begin), zone((1, 1), "BRISC", 400, phase="ZONE_END")]
    trace = trace_of(tmp_path, [marks[0], packet(100, 4), marks[1]])
    (core,) = trace.cores
    assert (core.chip, core.begin_cycle, core.end_cycle) == (4, 0, 100)


def test_a_packet_without_a_payload_is_one_word(tmp_path):
    increment = packet(100, 0, type="FABRIC_UNICAST_ATOMIC_INC", num_bytes=0)
    found = replay(trace_of(tmp_path, [increment]), load_chip("wormhole"))
    assert [(one.kind, one.size_bytes) for one in found.requests] == [
        ("FABRIC_UNICAST_ATOMIC_INC", 0)
    ]


def test_a_folder_may_hold_the_links_of_its_chips_beside_the_traces(tmp_path):
    trace_of(tmp_path, [packet(100, 0), packet(300, 0)])
    (tmp_path / "topology.json").write_text('{"eth_chan_to_coord": {"0": [9, 0]}}')
    found = replay_folder(tmp_path, load_chip("wormhole"), jobs=1)
    assert len(found.traces) == 1 and found.problems == 0
