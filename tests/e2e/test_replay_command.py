# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Traces through the command and the simulator; accuracy is in test_validation.py."""

import json
import subprocess
import sys

import pytest

from inside.machines import catalogue
from inside.replay import load_noc_trace, replay
from trace_example import event, write, zone

NEAR, FAR, DRAM = (1, 1), (9, 8), (0, 11)


def command(folder, *arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "towpath", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def reading(core, cycles, to, size_bytes, end, *, processor="NCRISC", noc=0):
    """A kernel that reads at these cycles and then waits."""
    calls = [
        event(core, processor, at, "READ", to, size_bytes=size_bytes, noc=noc) for at in cycles
    ]
    barrier = [
        event(core, processor, cycles[-1] + 120, "READ_BARRIER_START", noc=noc),
        event(core, processor, end, "READ_BARRIER_END", noc=noc),
    ]
    return [zone(core, processor, 0), *calls, *barrier]


@pytest.fixture
def trace(tmp_path):
    """Two cores, both NoCs, L1 and DRAM."""
    events = [
        *reading(NEAR, [200, 340, 480], FAR, 4096, 1200),
        *reading(NEAR, [190, 330], DRAM, 2048, 900, processor="BRISC", noc=1),
        *reading(FAR, [230, 370], NEAR, 8192, 1300),
    ]
    return write(tmp_path / "small.json", events)


def test_the_command_prints_predicted_beside_measured(trace, tmp_path):
    lines = command(tmp_path, "replay", "small.json").stdout.splitlines()
    assert lines[0] == "# small on wormhole: 7 requests of 3 processors"
    figures = lines.index("# cycles                     predicted  measured   error") + 1
    rows = [line.split() for line in lines[figures : figures + 2]]
    assert [row[:2] for row in rows] == [["longest", "core"], ["median", "core"]]
    assert rows[0][3] == "1300"
    assert sum(line.startswith("  (") for line in lines) == 3
    assert lines[-3].startswith("Longest core: ") and ", 1,300 measured, " in lines[-3]


def test_json_and_page_are_written(trace, tmp_path):
    done = command(tmp_path, "replay", "small.json", "--json", "--out", "page.html")
    shown = json.loads(done.stdout)["results"][0]
    assert shown["measured"] == {
        "longest_core": 1300, "median_core": 1200, "first_begin_to_last_event": 1300,
    }  # fmt: skip
    assert len(shown["requests"]) == 7 and len(shown["cores"]) == 3
    for request in shown["requests"]:
        names = ("issued", "started", "sent", "received", "completed")
        cycles = [request[f"{name}_cycle"] for name in names]
        assert cycles == sorted(cycles) and cycles[0] >= 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>NoC 0</h2>" in page and "<h2>NoC 1</h2>" in page


def test_a_folder_gets_a_line_per_trace_and_a_summary(trace, tmp_path):
    (tmp_path / "more").mkdir()
    write(tmp_path / "more" / "one.json", reading(NEAR, [200, 340], FAR, 4096, 1200))
    done = command(tmp_path, "replay", ".", "--jobs", "1")
    heading, first, second, _, summary = done.stdout.splitlines()
    assert heading.split() == [
        "longest", "core,", "cycles", "requests", "predicted", "measured", "error",
    ]  # fmt: skip
    assert [line.split()[:2] for line in (first, second)] == [
        ["more/one.json", "2"],
        ["small.json", "7"],
    ]
    assert summary.startswith("2 traces on wormhole; absolute error: median ")
    folder = json.loads(command(tmp_path, "replay", ".", "--json", "--jobs", "1").stdout)
    single = json.loads(command(tmp_path, "replay", "small.json", "--json").stdout)
    assert folder["provenance"]["machines"] == single["provenance"]["machines"]
    found, alone = folder["results"][0], single["results"][0]
    assert found["summary"]["traces"] == 2 and found["summary"]["problems"] == 0
    assert found["traces"][1]["predicted_cycles"] == alone["predicted"]["longest_core"]


def test_a_folder_goes_on_past_a_trace_that_is_wrong(trace, tmp_path):
    (tmp_path / "bad.json").write_text("{}")
    done = command(tmp_path, "replay", ".", "--jobs", "1", code=2)
    assert done.stdout.splitlines()[1].startswith("bad.json")
    assert "2 traces on wormhole, 1 of them cannot be replayed; absolute error" in done.stdout
    (tmp_path / "empty").mkdir()
    assert "has no traces" in command(tmp_path, "replay", "empty", code=2).stderr
    error = command(tmp_path, "replay", ".", "--out", "page.html", code=2).stderr
    assert "--out applies to a single trace" in error


def test_a_replay_is_the_same_every_time(trace):
    spec = catalogue.load_chip("wormhole")
    loaded = load_noc_trace(trace, (10, 12))
    assert replay(loaded, spec).to_dict() == replay(loaded, spec).to_dict()


def test_more_readers_of_one_core_take_longer(tmp_path):
    """Waiting is the simulated network's: the traced ends are the same."""
    spec = catalogue.load_chip("wormhole")
    longest = []
    for readers in (1, 8):
        events = []
        for x in (1, 2, 3, 4, 6, 7, 8, 9)[:readers]:
            events += reading((x, 2), [200, 340, 480, 620], (1, 1), 8192, 9000)
        loaded = load_noc_trace(write(tmp_path / f"{readers}.json", events), (10, 12))
        longest.append(replay(loaded, spec).predicted.longest_core)
    # 8 cores x 4 reads x 257 flits through one interface.
    assert longest[1] > 8 * 4 * 257 > longest[0]


def test_at_traced_times_a_late_request_is_late(tmp_path):
    spec = catalogue.load_chip("wormhole")
    events = reading(NEAR, [200, 5000], FAR, 4096, 6000)
    loaded = load_noc_trace(write(tmp_path / "t.json", events), (10, 12))
    for pace in ("gaps", "times"):
        first, second = replay(loaded, spec, pace=pace).requests
        assert 4700 < second.issued_cycle - first.issued_cycle < 4900


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("none.json",), "none.json: cannot be read"),
        (("small.json", "--pace", "fast"), "'fast' is not one of 'gaps', 'times'"),
        (("small.json", "--machine", "dgx-h100"), "dgx-h100"),
        (
            ("small.json", "--machine", "none"),
            "'none'; choose one of blackhole, wormhole",
        ),
        (("small.json", "--out", "none/page.html"), "there is no directory 'none'"),
    ],
)
def test_a_mistake_is_one_sentence(trace, tmp_path, arguments, reason):
    done = command(tmp_path, "replay", *arguments, code=2)
    assert reason in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""


def test_a_request_that_the_chip_cannot_carry_out_is_one_sentence(tmp_path):
    to_arc = (0, 10)
    write(tmp_path / "t.json", reading(NEAR, [200], to_arc, 64, 900))
    done = command(tmp_path, "replay", "t.json", code=2)
    assert done.stderr.count("\n") == 1 and "0-10" in done.stderr or "(0, 10)" in done.stderr
