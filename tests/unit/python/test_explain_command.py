# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath explain` and `expect`, and `tune` as NCCL: what they say and what they run."""

import json
import re

import pytest

import towpath
from conftest import refusal, towpath_command
from inside.machines import catalogue
from inside.nccl import Imitation, Library
from inside.tuning import NcclAdvice, Timing, nccl_lines
from inside.validation import accuracy, shipped, validate_table
from towpath import Tuning

PLACE = ("--machine", "dgx-h100", "--hosts", "1")
MIB = 1 << 20


@pytest.fixture(scope="module")
def one_host():
    return towpath.load("dgx-h100", hosts=1)


@pytest.fixture(scope="module")
def chips():
    return towpath.load("n300")


def refused(*words):
    with pytest.raises(towpath.ConfigError) as caught:
        towpath_command(*words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- schedules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "broadcast", "reduce"])
def test_what_nccl_would_run_gives_right_data(one_host, collective):
    library = Library.of(variables={"NCCL_NVLS_ENABLE": "0"})
    found = one_host.run(collective, size_bytes="64,4K", library=library)
    assert [row.out_of_place.wrong for row in found.rows] == [0, 0]
    assert all("what NCCL would run: " in row.choice for row in found.rows)


@pytest.mark.parametrize(("machine", "library"), [("mi300x", "RCCL"), ("dgx-h100", "NCCL")])
def test_the_library_of_the_gpus_is_asked(machine, library):
    place = ("--machine", machine, "--hosts", "1", "--sizes", "4K")
    assert f"{library} runs " in towpath_command("explain", "all_reduce", *place).output
    expected = towpath_command("expect", "all_reduce", *place, "--json").output
    assert f"what {library} would run" in expected


def test_two_hosts_run_a_tree_then_rings_of_the_search():
    machine = towpath.load("dgx-h100", hosts=2)
    found = machine.run("all_reduce", size_bytes=64, library="nccl")
    assert (found.algorithm, found.protocol) == ("tree_all_reduce", "LL")
    imitation = machine.imitate(Library.of())
    ring = imitation.forced("all_reduce", MIB, imitation.choose("all_reduce", 8).alternatives[0])
    source = imitation.source("all_reduce", MIB, ring)
    assert source.algorithm == "ring_all_reduce"
    assert source.rings[0] == (0, 7, 6, 5, 4, 3, 2, 1, 9, 10, 11, 12, 13, 14, 15, 8)
    assert source.channels == len(source.rings) == ring.channels
    assert towpath.verify(towpath.Schedule(source.schedule(), source), size_bytes=MIB).is_correct


def test_a_source_with_rings_survives_json():
    from dataclasses import asdict

    from inside.schedules import ScheduleSource

    source = ScheduleSource(ranks=3, rings=((0, 2, 1),), algorithm="ring_all_reduce")
    again = ScheduleSource(**json.loads(json.dumps(asdict(source))))
    assert again == source and hash(again) == hash(source)


def test_a_graph_file_of_the_user_leads_the_rings(tmp_path):
    file = tmp_path / "graph.xml"
    towpath_command("explain", "all_reduce", *PLACE, "--sizes", "8", "--graph-out", str(file))
    text = file.read_text()
    orders = re.findall(r"(?s)<channel>(.*?)</channel>", text)
    assert len(orders) >= 24
    swapped = text.replace('dev="1"', 'dev="x"').replace('dev="7"', 'dev="1"')
    file.write_text(swapped.replace('dev="x"', 'dev="7"'))
    machine = towpath.load("dgx-h100", hosts=1)
    imitation = machine.imitate(Library.of(graph_file=str(file)))
    choice = imitation.choose("all_reduce", 8)
    assert imitation.source("all_reduce", 8, choice).rings == ((0, 7, 2, 3, 4, 5, 6, 1),)


def test_a_choice_without_a_schedule_has_the_time_of_the_library_itself(one_host, monkeypatch):
    choice = one_host.imitate(Library.of()).choose("all_reduce", 1 << 26)
    monkeypatch.setattr(Imitation, "has_schedule", lambda *_: False)
    row = one_host.run("all_reduce", size_bytes="64M", library="nccl").row
    assert (row.is_simulated, row.time_us) == (False, choice.predicted_us)
    assert (row.protocol, row.channels) == (choice.protocol, choice.channels)
    assert (row.wrong, row.in_place) == (None, None)
    text = towpath_command("expect", "all_reduce", *PLACE, "--sizes", "64M").stdout
    assert re.search(rf"{row.algorithm} {choice.protocol} {choice.channels} \*$", text, re.M)
    assert "# *                    : predicted by the library's own model" in text


# --- explain and expect ---------------------------------------------------------------------------


def test_explain_names_the_choice_the_next_best_and_what_limits_it(one_host):
    found = one_host.explain("all_reduce", size_bytes="1K")
    assert (found.choice.name, found.choice.channels) == ("Ring/LL", 1)
    assert [one.name for one in found.candidates[:2]] == ["Ring/LL", "Tree/LL"]
    assert found.candidates[0].simulated_us > 0
    assert found.limit.startswith("latency: 15.0 of 15.0 us")
    assert any("24 coll channels, 16 nvls channels" in line for line in found.log)
    assert found.log[-1].startswith("AllReduce: 1024 Bytes -> Algo RING proto LL ")
    assert json.dumps(found.to_dict())


def test_the_limit_of_a_large_array_is_bandwidth():
    spec = catalogue.load("dgx-h100", hosts=2)
    imitation = Imitation(spec, Library.of(variables={"NCCL_ALGO": "Ring"}))
    from inside.nccl import limit_of

    choice = imitation.choose("all_reduce", 1 << 30)
    sentence = limit_of(imitation.facts.communicator, "all_reduce", choice, 1 << 30)
    assert sentence.startswith("bandwidth: ") and "8 paths of 48 GB/s through adapters" in sentence


def test_explain_prints_all_of_it():
    text = towpath_command("explain", "all_reduce", *PLACE, "--sizes", "8").stdout
    for part in ("NCCL runs Ring/LL, 1 channel", "next best: Tree/LL", "not considered:",
                 "Channel 00/24 : 0 1 2 3 4 5 6 7", "note: the GPUs are Hopper"):  # fmt: skip
        assert part in text, part
    found = json.loads(
        towpath_command("explain", "all_reduce", *PLACE, "--sizes", "8,1G", "--json").stdout
    )["results"]
    assert [each["size_bytes"] for each in found] == [8, 1 << 30]
    assert found[0]["choice"]["name"] == "Ring/LL"


def test_expect_prints_the_table_of_nccl_tests():
    line = ("expect", "all_gather", *PLACE, "--sizes", "512,4K")
    text = towpath_command(*line).stdout
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    assert [row[:5] for row in rows] == [
        ["512", "128", "float32", "none", "-1"], ["4096", "1024", "float32", "none", "-1"],
    ]  # fmt: skip
    assert all(float(row[5]) > 0 and row[8] == "N/A" for row in rows)
    assert "# the end of a row is the error to expect" in text
    found = json.loads(towpath_command(*line, "--json").stdout)["results"][0]
    assert [row["choice"].split(":")[0] for row in found["rows"]] == ["what NCCL would run"] * 2


def test_a_variable_bends_what_is_expected(one_host):
    line = ("expect", "all_reduce", *PLACE, "--sizes", "64M", "--json")
    usual, ring = (
        json.loads(towpath_command(*line, *option).stdout)["results"][0]["rows"][0]
        for option in ((), ("--env", "NCCL_ALGO=Ring"))
    )
    assert usual["algorithm"] != ring["algorithm"] == "ring_all_reduce"
    library = Library.of(variables={"NCCL_ALGO": "Ring"})
    assert ring["time_us"] == one_host.expect(size_bytes="64M", library=library).time_us


def test_a_library_chooses_alone(one_host, chips):
    call = {"size_bytes": "1K", "library": "nccl"}
    for option in ({"protocol": "LL"}, {"algorithm": "ring"}, {"channels": 2}):
        [name] = option
        assert f"{name} applies to Towpath's own choice" in refusal(one_host.run, **call, **option)
    assert "library applies to clusters of GPUs" in refusal(chips.run, **call)
    schedule = towpath.Schedule.generate("all_reduce", ranks=4)
    assert "library chooses a schedule" in refusal(one_host.run, schedule, **call)
    assert "library applies to simulated runs" in refusal(
        towpath.run_live, "all_reduce", ranks=2, **call
    )


@pytest.mark.slow
def test_expected_times_are_those_of_the_validated_rows(tmp_path):
    sizes = [8, 64 << 10, 256 << 10, 4 * MIB, 64 * MIB]
    table = shipped.find_table("gpu_collectives/all_reduce_two_h100_servers")
    part = tmp_path / "part.csv"
    default = re.compile(r"\d+,\d+,default,(\d+),")
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not (row := default.match(line)) or int(row[1]) in sizes]
    part.write_text("".join(kept), encoding="utf-8")
    rows = validate_table(part, group="default").rows
    validated = {int(row["size_bytes"]): row["predicted"] for row in rows}
    machine = towpath.load("dgx-h100", hosts=2)
    expected = machine.expect("all_reduce", size_bytes=sizes)
    for row in expected.rows:
        assert row.time_us == pytest.approx(validated[row.size_bytes], rel=1e-9)
        near = accuracy.accuracy_of(machine.spec, 16, "all_reduce", row.algorithm, row.size_bytes)
        assert near.hosts == 2 and near.rows == row.error_rows
        assert row.error_pct == (near.median_pct, near.p90_pct)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("explain", "all_reduce", "--machine", "t3000"), "for a cluster of GPUs"),
        (("explain", "all_to_all", *PLACE), "does not choose an algorithm"),
        (("explain", "all_reduce", *PLACE, "--as", "gloo"), "nccl or rccl"),
        (("explain", "all_reduce", *PLACE, "--as", "rccl"), "is not supported"),
        (("explain", "all_reduce", *PLACE, "--env", "NCCL_ALGO"), "NCCL_ALGO=Ring"),
        (("explain", "all_reduce", *PLACE, "--generation", "kepler"), "volta"),
        (("expect", "all_reduce", *PLACE, "--graph", "none.xml"), "none.xml"),
        (("expect", "all_reduce", "--machine", "t3000"), "cluster of GPUs"),
        (("tune", "all_reduce", *PLACE, "--env", "NCCL_ALGO=Ring"), "requires --as"),
        (("tune", "all_reduce", "--live", "2", "--as", "nccl"), "--as applies to GPUs"),
        (("tune", "all_reduce", *PLACE, "--as", "nccl", "--channels", "2"), "--channels"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(words, key):
    assert key in refused(*words)


# --- the file for the tuner plugin ----------------------------------------------------------------


def test_a_tuner_file_says_the_error_and_leaves_unknown_sizes_to_nccl(one_host):
    imitation = one_host.imitate(Library.of())
    source = imitation.source("all_reduce", 1024, imitation.choose("all_reduce", 1024))
    tuning = Tuning(
        "all_reduce", "x", "simulated", 1,
        [Timing(source, 1024, 9.0), Timing(source, 4096, 9.0), Timing(source, 16384, 9.0)],
    )  # fmt: skip
    own = {1 << power: imitation.tuner_line("all_reduce", 1 << power) for power in (3, 12, 20, 21)}
    errors = {1024: "model error 5 %", 4096: None, 16384: "model error 5 %"}
    lines = list(nccl_lines(tuning, NcclAdvice(errors, own)))
    rows = [line.split(",") for line in lines if not line.startswith("#")]
    # Every size has a line, and one only.
    assert [int(row[1]) for row in rows][1:] == [int(row[2]) + 1 for row in rows][:-1]
    assert rows[0][1] == "0" and rows[-1][2] == str((1 << 63) - 1)
    assert rows[-1][3:5] == ["nvls", "simple"]
    assert sum("model error 5 %" in line for line in lines) == 2
    assert "not validated" in lines[2]
