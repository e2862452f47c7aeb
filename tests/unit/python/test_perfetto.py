# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The rules are those of the Trace Event Format document and of Perfetto's JSON importer."""

import gzip
import json
from collections import defaultdict

import pytest

from inside.collectives import Timeline
from inside.pages import write_perfetto
from report_example import example_timeline


def _events(timeline, path):
    write_perfetto(timeline, path)
    trace = json.loads(path.read_text())
    assert trace["displayTimeUnit"] == "ns"
    return trace["traceEvents"]


def _complete(events):
    return [event for event in events if event["ph"] == "X"]


def _ps(time_us):
    return round(time_us * 1e6)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    timeline = example_timeline(ranks=4, blocks=2, loops=3)
    return timeline, _events(timeline, tmp_path_factory.mktemp("perfetto") / "trace.json")


def test_every_event_has_the_fields_of_its_phase(example):
    _, events = example
    fields = {
        "M": {"ph", "name", "pid", "tid", "args"},
        "X": {"ph", "name", "pid", "tid", "ts", "dur", "args"},
        "C": {"ph", "name", "pid", "tid", "ts", "args"},
    }
    assert {event["ph"] for event in events} == set(fields)
    for event in events:
        assert set(event) == fields[event["ph"]]
        # Process and thread 0 are "idle" to Perfetto.
        assert event["pid"] > 0
        assert event["tid"] > 0
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0


def test_every_span_is_there_with_its_exact_picoseconds(example):
    timeline, events = example
    processes, threads = _names(events)
    found = sorted(
        (processes[event["pid"]], threads[event["pid"], event["tid"]], event["name"],
         _ps(event["ts"]), _ps(event["dur"]), *event["args"].items())
        for event in _complete(events)
    )  # fmt: skip
    expected = []
    for track, name, begin_ps, end_ps, value in timeline.spans:
        words = timeline.tracks[track].split(" ", 2)
        is_link = words[0] == "link"
        process, thread = ("links", " ".join(words[1:])) if is_link else (
            " ".join(words[:2]), words[2])  # fmt: skip
        argument = ("bytes" if is_link else "step", value)
        expected.append(
            (process, thread, timeline.names[name], begin_ps, end_ps - begin_ps, argument)
        )
    assert found == sorted(expected)


def test_ranks_come_first_in_order_then_links(example):
    _, events = example
    processes, _ = _names(events)
    order = {e["pid"]: e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"}
    assert [processes[pid] for pid in sorted(processes, key=order.get)] == [
        "rank 0", "rank 1", "rank 2", "rank 3", "links", "link utilisation"
    ]  # fmt: skip


def test_spans_of_a_thread_follow_each_other(example):
    _, events = example
    begins = [event["ts"] for event in _complete(events)]
    assert begins == sorted(begins)
    _assert_no_overlap(events, _ps)


def test_spans_do_not_overlap_once_perfetto_has_cut_them_to_nanoseconds(example, tmp_path):
    # Its importer computes int64(double * 1000); 1.001 * 1000 is 1000.999..., a nanosecond early.
    ends_ps = [ns * 1000 for ns in range(0, 60_000, 7)]
    spans = [(0, 0, a, b, 0) for a, b in zip(ends_ps[:-1], ends_ps[1:], strict=True)]
    whole = _events(Timeline(8, ["rank 0 thread block 0"], ["send"], spans), tmp_path / "a.json")
    for events in (whole, example[1]):
        _assert_no_overlap(events, lambda time_us: int(time_us * 1000.0))


def test_spans_that_overlap_get_threads_of_their_own(tmp_path):
    spans = [(0, 0, 0, 10, 0), (0, 0, 5, 15, 1), (0, 0, 10, 20, 2), (0, 0, 10, 10, 3)]
    timeline = Timeline(8, ["rank 0 thread block 7"], ["send"], spans)
    events = _events(timeline, tmp_path / "trace.json")
    _, threads = _names(events)
    steps = defaultdict(list)
    for event in _complete(events):
        steps[threads[event["pid"], event["tid"]]].append(event["args"]["step"])
    assert steps == {"thread block 7": [0, 3, 2], "thread block 7 (2)": [1]}


def test_link_counter_is_the_share_of_time_it_was_busy(tmp_path):
    # 200 bins of 10 ps: busy in the first half of the call, then half of the last bin.
    spans = [(0, 0, 0, 1000, 64), (0, 0, 1995, 2000, 64)]
    events = _events(Timeline(8, ["link a > b"], ["segment"], spans), tmp_path / "trace.json")
    counters = [(_ps(e["ts"]), e["args"]["percent"]) for e in events if e["ph"] == "C"]
    assert counters == [(0, 100), (1000, 0), (1990, 50), (2000, 0)]


def test_names_from_outside_stay_text(tmp_path):
    spans = [(0, 0, 0, 1, 0), (1, 0, 0, 1, 0)]
    timeline = Timeline(8, ['link "a" > b\\', "core 3"], ['se"nd\n'], spans)
    events = _events(timeline, tmp_path / "trace.json")
    assert {event["name"] for event in _complete(events)} == {'se"nd\n'}
    processes, threads = _names(events)
    assert {(processes[pid], name) for (pid, _), name in threads.items()} == {
        ("links", '"a" > b\\'), ("other", "core 3")
    }  # fmt: skip


def test_empty_timeline_is_an_empty_trace(tmp_path):
    assert _events(Timeline(8, [], [], []), tmp_path / "trace.json") == []


def test_name_ending_in_gz_compresses(tmp_path):
    timeline = example_timeline(ranks=2, blocks=1, loops=1)
    write_perfetto(timeline, tmp_path / "trace.json.gz")
    write_perfetto(timeline, tmp_path / "trace.json")
    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        assert file.read() == (tmp_path / "trace.json").read_text()


def _names(events):
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {
        (e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"
    }
    return processes, threads


def _assert_no_overlap(events, in_units):
    until = defaultdict(int)
    for event in _complete(events):
        thread = event["pid"], event["tid"]
        begin = in_units(event["ts"])
        assert until[thread] <= begin
        until[thread] = begin + in_units(event["dur"])
