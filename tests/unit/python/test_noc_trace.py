# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NoC traces: what is read, and that a trace with anything missing is refused as a whole."""

import json
import re

import pytest

from inside.replay import EVENTS_MAX, FABRIC, KINDS, load_noc_trace, measured, noc_trace
from inside.validation import find_table, read_table
from mutate import check_mutants
from towpath import ConfigError
from trace_example import event, every_kind, flush, write, zone

CORE = (1, 1)
READ = event(CORE, "BRISC", 100, "READ", (2, 2), size_bytes=64)
START = event(CORE, "BRISC", 200, "READ_BARRIER_START")
PACKET = event(CORE, "BRISC", 100, "FABRIC_UNICAST_WRITE", (2, 2), size_bytes=64)
END = event(CORE, "BRISC", 300, "READ_BARRIER_END")


def without(own, *names):
    return {name: value for name, value in own.items() if name not in names}


def refusal(path, grid=(10, 12)):
    with pytest.raises(ConfigError) as refused:
        load_noc_trace(path, grid)
    sentence = str(refused.value)
    assert sentence.isprintable() and len(sentence) < 600 + len(str(path))
    return sentence


def test_every_kind_of_event_is_read(tmp_path):
    trace = load_noc_trace(write(tmp_path / "example.json", every_kind()), (10, 12))
    assert trace.name == "example"
    assert [(core.core, core.processor) for core in trace.cores] == [
        ((1, 1), "BRISC"), ((1, 1), "NCRISC"), ((2, 3), "BRISC"),
    ]  # fmt: skip
    brisc, ncrisc, other = trace.cores
    assert [core.begin_cycle for core in trace.cores] == [0, 50, 30]
    assert [core.end_cycle for core in trace.cores] == [1700, 1100, 140]
    assert ncrisc.flush_cycles == (500,)
    first = brisc.events[0]
    assert (first.kind, first.cycle, first.noc) == ("WRITE_", 100, 1)
    assert (first.to, first.size_bytes, first.vc, first.number) == ((2, 3), 2048, 1, 1)
    multicast = brisc.events[7]
    assert (multicast.to, multicast.to_last, multicast.vc) == ((4, 3), (1, 2), 4)
    kinds = {event.kind for core in trace.cores for event in core.events}
    assert KINDS - FABRIC - kinds == {  # no other fields than those of their like
        "READ_WITH_STATE_AND_TRID", "WRITE_BARRIER_WITH_TRID", "WRITE_SET_TRID",
        "WRITE_FLUSH_WITH_TRID",
    }  # fmt: skip
    assert trace.requests == 10


def test_a_stateful_request_goes_where_its_state_says(tmp_path):
    trace = load_noc_trace(write(tmp_path / "example.json", every_kind()))
    found = {event.kind: (event.to, event.size_bytes) for event in trace.cores[0].events}
    assert found["WRITE_WITH_STATE"] == ((2, 3), 512)  # of the state, for it says none itself
    assert found["WRITE_WITH_TRID_WITH_STATE"] == ((2, 3), 96)  # its own
    found = {event.kind: (event.to, event.size_bytes) for event in trace.cores[1].events}
    assert found["READ_WITH_STATE"] == ((2, 3), 256)
    assert found["READ_DRAM_SHARDED_WITH_STATE"] == ((0, 1), 64)


def test_cycles_count_from_the_first_event_whatever_the_order_of_cores(tmp_path):
    later, sooner = (3, 3), (2, 2)
    events = [
        zone(later, "BRISC", 70),
        event(later, "BRISC", 90, "READ", (1, 1), size_bytes=32),
        event(sooner, "NCRISC", 10, "READ", (1, 1), size_bytes=32),
    ]
    trace = load_noc_trace(write(tmp_path / "t.json", events))
    # The first core without a zone begins with its first event.
    assert [(core.begin_cycle, core.end_cycle) for core in trace.cores] == [(60, 80), (0, 0)]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([READ, START], "t.json:3: event 1: is a READ_BARRIER_START on core (1, 1) BRISC that no"),
        ([READ, START, READ | {"timestamp": START["timestamp"]}], "t.json:3: event 1: is a READ_"),
        ([READ, END], "t.json:3: event 1: is a READ_BARRIER_END on core (1, 1) BRISC without a"),
        ([START, END | {"noc": "NOC_1"}], "t.json:2: event 0: is a READ_BARRIER_START"),
        ([END, START], "t.json:2: event 0: is a READ_BARRIER_END"),
        ([START, READ], "cycles before its predecessor"),
        ([without(READ, "noc")], "t.json:2: event 0: has no 'noc'"),
        ([without(READ, "proc")], "has no 'proc'"),
        ([without(READ, "type")], "has no 'type'"),
        ([without(READ, "sx")], "has no 'sx'"),
        ([without(READ, "dy")], "has no 'dy'"),
        ([without(READ, "num_bytes")], "has no 'num_bytes'"),
        ([without(READ, "timestamp")], "has no 'timestamp'"),
        ([READ | {"dx": 10}], "its dx is 10; it must be a whole number from 0 to 9"),
        ([READ | {"sy": 12}], "its sy is 12; it must be a whole number from 0 to 11"),
        ([READ | {"dx": -1}], "its dx is -1"),
        ([READ | {"dx": True}], "its dx is True"),
        ([READ | {"dx": 1.0}], "its dx is 1.0"),
        ([READ | {"vc": 6}], "its vc is 6; it must be a whole number from -1 to 5"),
        ([READ | {"num_bytes": 0}], "its num_bytes is 0"),
        ([READ | {"num_bytes": 1 << 22}], "its num_bytes is 4194304"),
        ([READ | {"timestamp": -1}], "its timestamp is -1"),
        ([READ | {"type": "FABRIC_READ"}], "its type is 'FABRIC_READ'; choose one of"),
        ([READ | {"type": ["READ"]}], "its type is ['READ']; it must be a word"),
        ([READ | {"noc": "NOC_2"}], "its noc is 'NOC_2'; choose one of NOC_0, NOC_1"),
        ([READ | {"proc": ""}], "its proc is ''; choose one of BRISC, ERISC, NCRISC, TRISC_0"),
        ([READ | {"type": "READ_WITH_STATE"}], "without a preceding event that sets the state"),
        ([zone(CORE, "BRISC", 0), zone(CORE, "BRISC", 9)], "starts a second kernel on core (1, 1)"),
        ([zone(CORE, "BRISC", 0, phase="middle")], "its zone_phase is 'middle'"),
        ([READ | {"src_device_id": -1}], "its src_device_id is -1; it must be a whole number "
            "from 0"),
        ([PACKET | {"fabric_send": 3}], "its fabric_send is 3; it must be an object"),
        ([PACKET | {"fabric_send": {"path": []}}], "its fabric_send.path is not a list of parts"),
        ([PACKET | {"fabric_send": {}}], "has no 'eth_chan'"),
        ([flush(CORE, 0)], "has no events of a kernel"),
        (["READ"], "is 'READ'; it must be an object"),
    ],
)  # fmt: skip
def test_a_trace_with_a_hole_is_refused_in_one_sentence(tmp_path, events, said):
    assert said in refusal(write(tmp_path / "t.json", events))


def test_a_run_of_hours_is_refused(tmp_path):
    late = READ | {"timestamp": READ["timestamp"] + 10**11}
    assert "spans more than" in refusal(write(tmp_path / "t.json", [READ, late]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: is not a NoC trace"),
        ("{}", ":1: is not a NoC trace"),
        ("\n\n[]", ":3: holds no events"),
        ("[\n{},\n", ":2: event 0: has no 'sx'"),
        ('[\n{"sx": 1, "sx": 2}]', ":2: has an item that has 'sx' twice"),
        ("[\n[\n1", "is not valid JSON"),
        ('[\n{"sx": NaN}]', "has NaN, which is not a number"),
        ('[{"sx": ' + "9" * 5000 + "}]", "at most 20 digits"),
        ("[" * 100_000, ":1: is nested too deeply"),
    ],
)
def test_what_is_no_list_of_events_is_refused(tmp_path, text, said):
    path = tmp_path / "t.json"
    path.write_text(text)
    assert said in refusal(path)


def test_the_line_of_a_mistake_in_the_middle_is_named(tmp_path):
    path = write(tmp_path / "t.json", [READ, START, END])
    text = path.read_text()
    path.write_text(text.replace("},\n", "}\n", 1))
    assert "t.json:3: is not valid JSON" in refusal(path)
    path.write_text(text.rstrip("]\n"))
    assert "t.json:4: is cut off" in refusal(path)
    path.write_text(text + "[]")
    assert "t.json:6: continues after the end of its list" in refusal(path)


def test_more_events_than_are_read_are_refused(tmp_path, monkeypatch):
    assert EVENTS_MAX > 100_000
    monkeypatch.setattr(noc_trace, "EVENTS_MAX", 2)
    said = refusal(write(tmp_path / "t.json", [READ, START, END]))
    assert "t.json:4: event 2: it must have at most 2 events" in said


# --- traces of tt-npe ---------------------------------------------------------------------------


def test_published_end_to_end_figures_follow_from_the_traces(data_folder):
    rows = read_table(find_table("noc/traced_kernels")).rows
    assert rows
    for row in rows:
        trace = load_noc_trace(data_folder / "traces" / "noc" / row["trace"], (10, 12))
        figures = measured(trace)
        name = "begin_to_last_event_cycles"
        assert figures.longest_core == int(row[f"longest_core_{name}"])
        assert figures.first_begin_to_last_event == int(row[f"first_{name}"])
        # The table counts a profiler's flush as one more processor, which did nothing.
        if not any(core.flush_cycles for core in trace.cores):
            assert figures.median_core == int(row[f"median_core_{name}"])


# --- spoilt files ---------------------------------------------------------------------------------


def check(seeds, folder):
    originals = [write(folder / "every_kind.json", every_kind())]
    indented = folder / "indented.json"
    indented.write_text(json.dumps(every_kind(), indent=1))
    originals.append(indented)
    reader = "inside.replay:load_noc_trace"
    check_mutants(reader, originals, seeds, folder, seconds_max=20, place=":[0-9]+")


@pytest.mark.slow
def test_100_spoilt_traces_load_or_are_refused_in_one_sentence(tmp_path):
    check(range(100), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 11))
def test_10_000_spoilt_traces_load_or_are_refused_in_one_sentence(tmp_path, part):
    check(range(1000 * part, 1000 * (part + 1)), tmp_path)


def test_a_refused_trace_names_its_file_and_line(tmp_path):
    spoilt = every_kind()
    del spoilt[11]
    said = refusal(write(tmp_path / "t.json", spoilt))
    assert re.match(
        r".*t\.json:12: event 10: is a WRITE_BARRIER_START on core \(1, 1\) BRISC", said
    )
