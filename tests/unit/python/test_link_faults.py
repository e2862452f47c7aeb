# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import json
import math
import re

import pytest

import towpath
from conftest import towpath_command
from inside import _core
from inside.collectives import LinkFault, links_of, parse_link_fault
from inside.machines import catalogue
from inside.pages import table
from towpath import ConfigError, DeadlockError


def run(*faults, collective="all_reduce", sizes="1M"):
    return towpath.load("t3000").run(
        collective, size_bytes=sizes, algorithm=None, protocol="Simple", link_faults=faults
    )


# --- what is asked for ---


def test_a_fault_has_its_end_and_its_times():
    fault = parse_link_fault("3:12, loss=0.01,at=20us,every=1.5ms,dead=400ns,training=2s")
    assert fault == LinkFault(3, 12, 0.01, 20, 1500, 0.4, 2e6, text=fault.text)
    assert fault.text == "loss=0.01,at=20us,every=1.5ms,dead=400ns,training=2s"


def test_what_is_not_said_is_that_nothing_is_wrong():
    fault = parse_link_fault("0:9,every=100us")
    assert (fault.drop_at_us, fault.drop_period_us) == (100, 100)
    assert (fault.frame_loss, fault.dead_time_us, fault.training_time_us) == (0, 0, None)
    assert parse_link_fault("0:9,at=5us").drop_period_us == math.inf
    assert parse_link_fault("0:9,loss=0.5").drop_at_us == math.inf
    assert parse_link_fault("0:9,at=5us,dead=forever").dead_time_us == math.inf


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "0:9",
            "--link-fault is '0:9'; write CHIP:CHANNEL and options such as loss=0.01, at=20us,",
        ),
        ("9,at=5us", "--link-fault is '9,at=5us'; write CHIP:CHANNEL"),
        ("-1:9,at=5us", "--link-fault is '-1:9,at=5us'; write CHIP:CHANNEL"),
        ("0:9,every=5", "'every=5' has no time such as 20us; units are ns, us, ms and s"),
        ("0:9,every=inf", "'every=inf' has no time"),
        ("0:9,at=999999999s", "'at=999999999s' has no time such as 20us;"),
        ("0:9,at=forever", "'at=forever' has no time"),
        ("0:9,loss=1", "'loss=1' has no probability above 0 and below 1"),
        ("0:9,loss=nan", "'loss=nan' has no probability"),
        (
            "0:9,at=1us,at=2us",
            "'at=2us' of --link-fault '0:9,at=1us,at=2us' is unknown or repeated",
        ),
        ("0:9,down=1us", "'down=1us' of --link-fault '0:9,down=1us' is unknown or repeated;"),
        ("0:9,dead=forever", "--link-fault '0:9,dead=forever' never drops the link;"),
        ("0:9,loss=0.1,dead=5us", "says how a dropped link comes back, and not when it drops;"),
    ],
)
def test_a_bad_fault_is_one_sentence(text, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        parse_link_fault(text)


@pytest.mark.parametrize(
    ("faults", "sentence"),
    [
        (("99:0,at=5us",), "has no chip 99; it has 0 to 7"),
        (("0:0,at=5us",), "has no link; channels with links are 6, 7, 9, 14, 15"),
        (("0:9,at=5us", "4:1,at=9us"), "the link at channel 1 of chip 4 has two faults"),
    ],
)
def test_a_fault_where_no_link_is_is_one_sentence(faults, sentence):
    cluster = catalogue.load_chip_cluster("t3000").build()
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        links_of(cluster, [parse_link_fault(fault) for fault in faults])


def test_either_end_names_a_link():
    cluster = catalogue.load_chip_cluster("t3000").build()
    ends = (parse_link_fault(f"{end},at=5us") for end in ("0:9", "4:1"))
    one, other = (links_of(cluster, [fault]).keys() for fault in ends)
    assert one == other


@pytest.mark.parametrize("machine", ["dgx-h100", "carvnet"])
def test_faults_are_for_links_between_chips(machine):
    with pytest.raises(ConfigError, match="links between chips") as caught:
        towpath.load(machine).run("all_reduce", size_bytes="1K", link_faults=("0:9,at=5us",))
    assert caught.value.field == "link_faults"


def test_a_fault_of_a_live_run_is_refused():
    with pytest.raises(ConfigError, match="--link-fault requires --machine"):
        towpath_command("run", "all_reduce", "--live", "2", "--link-fault", "0:9,at=5us")


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("0:14,at=5us", "has faults, but the fabric does not use it; it uses channels 7, 9 of"),
        ("0:8,at=5us", "has faults, but the fabric does not use it"),
        ("0:9,every=100us", "drops every 100000 ns, before it is up again: it is dead for 0 ns"),
    ],
)
def test_a_fault_of_which_nothing_would_come_is_one_sentence(fault, sentence, capsys):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        towpath_command(*"run all_reduce --machine t3000 --sizes 1K --link-fault".split(), fault)
    assert capsys.readouterr().out == ""


def test_a_time_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="a fault has a time of nan us"):
        _core.LinkFaults(drop_at_us=math.nan)


# --- what comes of it ---


@pytest.mark.parametrize(
    ("collective", "sizes", "fault"),
    [
        ("all_reduce", "256K", "at=16us,every=100us,training=5us"),
        pytest.param("all_reduce", "1M", "every=100us,training=5us", marks=pytest.mark.long),
        ("all_gather", "256K", "at=16us,every=100us,training=5us"),
        ("reduce_scatter", "256K", "at=16us,every=100us,training=5us"),
        ("all_to_all", "256K", "at=16us,every=100us,training=5us"),
    ],
)
@pytest.mark.parametrize("end", ["0:7", "0:9"])
def test_data_are_right_with_each_link_of_a_chip_dropping_every_100_us(
    end, collective, sizes, fault
):
    result = run(f"{end},{fault}", collective=collective, sizes=sizes)
    assert result.wrong == 0
    cost = result.rows[0].fault_cost
    (link,) = cost.links
    assert link.drops >= 1
    assert link.down_us > 5 * link.drops
    assert link.is_up
    assert 0 < cost.time_us - cost.time_without_us < link.down_us + 30
    assert cost.time_us == result.rows[0].time_us


def test_without_faults_there_is_no_cost_and_the_time_is_the_one_it_is_held_against():
    healthy = run(sizes="64K").row
    cost = run("0:9,at=16us,training=5us", sizes="64K").row.fault_cost
    assert healthy.fault_cost is None
    assert cost.time_without_us == healthy.out_of_place.time_us < cost.time_us


def test_frames_that_are_lost_are_sent_again():
    result = run("0:9,loss=0.05", "2:9,loss=0.05", sizes="64K")
    links = result.row.fault_cost.links
    assert result.wrong == 0
    assert [link.link for link in links] == ["chip 0 E9 - chip 4 E1", "chip 2 E9 - chip 6 E1"]
    for link in links:
        assert link.drops == link.down_us == 0
        assert link.frames_lost > 0
        assert link.resent_bytes > 0


def test_a_link_that_never_comes_back_is_named_with_both_ends():
    with pytest.raises(DeadlockError) as caught:
        run("0:9,at=20us,dead=forever", sizes="256K")
    assert str(caught.value).startswith(
        "the link between Ethernet core (1, 6) of chip 0 and Ethernet core (1, 0) of chip 4 is "
        "down since 20000 ns and cannot be trained again; rank "
    )


def test_the_table_says_below_each_size_what_failing_links_cost():
    found = run("0:9,at=16us,training=5us", sizes="64K")
    row, time, link = table.row_lines(found, found.rows[0])
    assert row == table.row(found, found.rows[0])
    assert re.fullmatch(r"#   links fail: [0-9.]+ us instead of [0-9.]+ us", time)
    assert re.fullmatch(
        r"#   chip 0 E9 - chip 4 E1 \(at=16us,training=5us\): 1 drops, down for [0-9.]+ us, "
        r"[0-9]+ frames lost, [0-9]+ B sent again",
        link,
    )


# --- report and trace ---


@pytest.fixture(scope="module")
def reported():
    return run("0:9,at=18us,training=5us", sizes="64K")


def test_each_direction_of_each_link_has_its_load(reported):
    spec = catalogue.load_chip_cluster("t3000")
    assert len(reported.links) == 2 * len(spec.links)
    used = [link for link in reported.links if link.size_bytes > 0]
    assert len(used) == 16  # both ways round a ring of eight
    for link in used:
        # Each rank sends seven eighths twice, half of it each way round; packets have headers.
        assert 57344 <= link.size_bytes < 1.2 * 57344
        assert 0 < link.busy_fraction < 1
        assert link.kind == "ethernet"
    names = [(link.from_name, link.to_name) for link in used]
    assert ("chip 0 E9", "chip 4 E1") in names
    assert ("chip 4 E1", "chip 0 E9") in names


def test_the_report_shows_the_cost_and_the_loads(reported, tmp_path):
    path = tmp_path / "report.html"
    reported.report(path)
    page = path.read_text(encoding="utf-8")
    assert "Links that fail" in page
    assert "<td>1</td><td>" in page.split("at=18us,training=5us</td>")[1]
    assert '<td class="text">chip 0 E9</td><td class="text">chip 4 E1</td>' in page
    assert "busy all the time" in reported.topology_svg
    cost = json.loads(reported.to_json())["rows"][0]["fault_cost"]
    assert cost["links"][0]["drops"] == 1


def test_a_report_of_healthy_links_speaks_of_no_failure(tmp_path):
    run(sizes="8K").report(tmp_path / "report.html")
    assert "Links that fail" not in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def trace(reported, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    reported.trace(path)
    return Trace(json.loads(path.read_text())["traceEvents"])


class Trace:
    """A trace in Chrome's format."""

    def __init__(self, events):
        names = {
            kind: [event for event in events if event["name"] == kind]
            for kind in ("process_name", "thread_name")
        }
        self.processes = {e["pid"]: e["args"]["name"] for e in names["process_name"]}
        self.threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in names["thread_name"]}
        self.spans = [event for event in events if event["ph"] == "X"]

    def spans_of(self, process):
        return [span for span in self.spans if self.processes[span["pid"]] == process]


def carried_bytes(spans, name):
    return sum(span["args"]["bytes"] for span in spans if span["name"] == name)


def test_the_trace_has_all_ranks_and_links(trace):
    assert {f"rank {rank}" for rank in range(8)} <= set(trace.processes.values())
    links = {name for (pid, _), name in trace.threads.items() if trace.processes[pid] == "links"}
    assert len(links) == 16 and "chip 0 E9 > chip 4 E1" in links


def test_the_trace_has_each_frame_and_each_that_was_sent_again(trace, reported):
    frames = trace.spans_of("links")
    assert {frame["name"] for frame in frames} == {"frame", "frame sent again"}
    assert carried_bytes(frames, "frame") == sum(link.size_bytes for link in reported.links)
    again = reported.row.fault_cost.links[0].resent_bytes
    assert carried_bytes(frames, "frame sent again") == again


def test_the_trace_has_when_a_link_was_down(trace):
    (down,) = (span for span in trace.spans if span["name"] == "down")
    assert trace.threads[down["pid"], down["tid"]] == "outages of chip 0 E9 - chip 4 E1"
    assert down["ts"] == pytest.approx(18)
    assert down["dur"] > 5
