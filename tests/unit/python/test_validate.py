# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of `towpath validate`, on tables made here."""

import json

import pytest
from typer.testing import CliRunner

import towpath
from conftest import refusal, towpath_command
from inside.cli import main as cli
from inside.nccl import table_releases
from inside.pages import summary_line, validation_text, verdict_text
from inside.validation import (
    ErrorStatistics,
    Tolerance,
    error_statistics,
    find_table,
    names,
    read_table,
    shipped,
    validate_table,
)
from towpath import ConfigError, TableSummary

HEADER = "source,nodes,gpus,config,size_bytes,time_us_out_of_place,note\n"


def table(folder, *rows):
    path = folder / "table.csv"
    path.write_text(HEADER + "".join(row + "\n" for row in rows))
    return path


def test_errors_and_statistics_are_those_of_the_rows(tmp_path):
    path = table(tmp_path, *(f"here,2,16,NCCL_ALGO=Ring,{1 << s},100,x" for s in (10, 20, 26)))
    result = validate_table(path)
    errors = sorted(abs(100 * (row["predicted"] / 100 - 1)) for row in result.rows)
    assert [row["measured"] for row in result.rows] == [100, 100, 100]
    (group,) = result.groups
    assert group["rows"] == group["predicted"] == 3
    assert group["median_pct"] == pytest.approx(errors[1])
    # Between the second and third of three, 80 % of the way.
    assert group["p90_pct"] == pytest.approx(errors[1] + 0.8 * (errors[2] - errors[1]))
    assert group["worst_pct"] == pytest.approx(errors[2])


def test_rows_keep_their_columns_and_become_json(tmp_path):
    path = table(tmp_path, "here,2,16,default,1024,30,a note")
    shape = json.loads(json.dumps(validate_table(path).to_dict()))
    (row,) = shape["rows"]
    assert row["source"] == "here" and row["note"] == "a note" and row["size_bytes"] == "1024"
    assert {"group", "predicted", "measured", "error_pct"} <= set(row)
    assert row["error_pct"] == pytest.approx(100 * (row["predicted"] / 30 - 1))
    assert shape["groups"][0]["group"] == row["group"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("here,2,15,default,1024,30,", "15 GPUs"),
        ("here,2,16,NCCL_ALGO=NVLS,1024,30,", "NVLS"),
        ("here,2,16,surprise,1024,30,", "surprise"),
        ("here,two,16,default,1024,30,", "nodes"),
        ("here,2,16,default,1024,fast,", "time_us_out_of_place"),
        ("here,2,16,NCCL_ALGO=Foo,1024,30,", "NCCL_ALGO has 'Foo'"),
        ("here,2,16,default,1024,30,RoCE v2", "measured over roce"),
        ("here,2,16,default,1024,30,8x CX-6 200G", "have 392 GB/s"),
    ],
)
def test_a_row_that_cannot_be_simulated_stays_in_and_says_why(tmp_path, row, reason):
    result = validate_table(table(tmp_path, row, "here,2,16,default,1024,30,"))
    assert len(result.rows) == 2
    assert result.rows[0]["predicted"] is None and result.rows[0]["error_pct"] is None
    assert reason in result.rows[0]["error"]
    assert result.rows[1]["predicted"] > 0
    assert reason in validation_text(result)


def test_the_lesser_of_out_of_place_and_in_place_counts(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "nodes,gpus,config,size_bytes,time_us_out_of_place,time_us_in_place\n"
        "2,16,default,8,68.5,24.7\n2,16,default,16,25,\n2,16,default,32,25,26\n"
    )
    assert [row["measured"] for row in validate_table(path).rows] == [24.7, 25, 25]


def test_rows_are_answered_by_what_nccl_would_choose(tmp_path):
    rows = validate_table(
        table(
            tmp_path,
            "here,2,16,default,8,25,",
            "here,2,16,NCCL_ALGO=Ring NCCL_PROTO=Simple MIN_CTAS=24,8,25,",
        )
    ).rows
    assert [(row["chosen"], row["channels"]) for row in rows] == [
        ("Tree/LL", 1),
        ("Ring/Simple", 1),
    ]
    assert rows[1]["predicted"] > 2 * rows[0]["predicted"]


@pytest.mark.slow
def test_rows_may_be_of_any_number_of_hosts_and_name_their_machine(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "nodes,gpus,config,size_bytes,time_us_out_of_place,machine\n"
        "4,32,default,8,40,\n3,24,default,8,40,\n4,8,default,8,40,\n1,8,default,8,15,\n"
        "2,16,default,8,30,dgx-a100\n2,16,default,8,30,dgx-z\n"
    )
    *predicted, unknown = validate_table(path).rows
    assert all(row["predicted"] > 0 for row in predicted)
    assert "dgx-z" in unknown["error"]


def test_a_row_may_name_another_collective_than_all_reduce(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "nodes,gpus,config,size_bytes,time_us_out_of_place,collective\n"
        "1,8,default,67108864,200,\n1,8,default,67108864,200,all_reduce\n"
        "1,8,default,67108864,150,ReduceScatter\n1,8,default,8,15,all_rdeuce\n"
    )
    unnamed, named, scattered, unknown = validate_table(path).rows
    assert unnamed["predicted"] == named["predicted"] > scattered["predicted"] > 0
    assert scattered["algorithm_run"].endswith("reduce_scatter")
    assert scattered["group"].startswith("ReduceScatter, 1 nodes")
    assert "all_reduce" in unknown["error"]


def test_a_row_has_the_choice_of_the_release_that_it_names(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "machine,nccl,op,gpus,size_bytes,time_us\n"
        "dgx-a100,2.27.3,all_reduce,8,1048576,60\ndgx-a100,2.29.2,all_gather,8,1048576,40\n"
        "dgx-a100,2.29.2,alltoall,8,1048576,40\ndgx-a100,2.4.8,all_reduce,8,1048576,60\n"
    )
    newest = table_releases()[-1]
    assert [row["release"] for row in validate_table(path).rows] == [
        "2.27.5",
        "2.29.7",
        "2.29.7",
        newest,
    ]


def test_rows_of_amds_gpus_are_of_rccl(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(HEADER + "here,1,8,default,67108864,500,\n")
    [row] = validate_table(path, machine="mi300x").rows
    assert row["channels"] == 56  # NCCL has 24 or fewer there


def test_pynccl_of_vllm_runs_without_nvls(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("world_size,size_bytes,algorithm,time_us\n6,4194304,pynccl,53\n6,8,nccl,9\n")
    known, unknown = validate_table(path).rows
    assert known["chosen"] == "Ring/LL128"
    assert known["group"] == "6 GPUs, pynccl"
    assert unknown["predicted"] is None and "nccl" in unknown["error"]


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", HEADER + "here,2\n", HEADER + "1,2,3,4,5,6,7,8\n"]
)
def test_what_is_no_such_table_is_refused_in_one_sentence(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"table\.csv:\d+: ") as refused:
        validate_table(path)
    assert "\n" not in str(refused.value)


# --- files of tables ------------------------------------------------------------------------------

SPREAD = """# title: two curves
# source: a thread, which
#   goes on here
#not a fact
# tolerance: median 3 %, p90 10.5 %, worst 20 %
a,us@size=64,us@size=128
x,1,2
y,,4
"""


def test_comments_are_facts_and_a_column_may_stand_for_many_rows(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(SPREAD)
    table = read_table(path)
    assert table.facts["title"] == "two curves"
    assert table.facts["source"] == "a thread, which goes on here"
    assert table.columns == {"a", "us", "size"}
    assert table.rows == [
        {"a": "x", "us": "1", "size": "64"},
        {"a": "x", "us": "2", "size": "128"},
        {"a": "y", "us": "4", "size": "128"},
    ]
    assert table.header_line == 6
    assert Tolerance.of(table) == Tolerance(3, 10.5, 20)


@pytest.mark.parametrize(
    "spoilt", ["median 3, p90 4, worst 5", "median 1.2.3 %, p90 4 %, worst 5 %"]
)
def test_a_tolerance_that_is_none_is_refused(tmp_path, spoilt):
    path = tmp_path / "table.csv"
    path.write_text(f"# tolerance: {spoilt}\na\n1\n")
    assert "tolerance is" in refusal(Tolerance.of, read_table(path))


def test_a_line_behind_comments_is_named_by_its_own_number(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(SPREAD + "z,1\n")
    assert "table.csv:9: a row does not have the 3 fields" in refusal(read_table, path)
    path.write_text("# title: x\na,b\n1,2\n")
    assert "table.csv:2: its columns fit no known table" in refusal(validate_table, path)
    path.write_text("nodes,gpus,size_bytes,time_us_out_of_place\n1,8,8,15\n")
    assert "'collectives on GPU clusters', also needs config; docs" in refusal(validate_table, path)


# --- shipped tables -------------------------------------------------------------------------------


def test_every_shipped_table_names_its_source_its_tolerance_and_a_known_kind():
    assert len(names()) == 19
    for name in names():
        table = read_table(find_table(name))
        assert {"title", "source", "measured", "tolerance"} <= set(table.facts), name
        assert Tolerance.of(table) is not None
        readme = find_table(name).parent / "README.md"
        assert f"towpath validate {name}" in readme.read_text(), name


def test_the_big_table_holds_all_its_rows():
    table = read_table(find_table("noc/patterns"))
    assert len(table.rows) == 3421
    sizes = {row["transaction_bytes"] for row in table.rows}
    assert sizes == {str(64 << power) for power in range(11)}


def test_statistics_are_of_absolute_errors_of_rows_that_were_predicted():
    errors = [-40, 1, 2, None, 3, 4]
    found = error_statistics({"error_pct": error} for error in errors)
    assert (found.rows, found.predicted) == (6, 5)
    assert (found.median_pct, found.worst_pct) == (3, 40)
    assert found.p90_pct == pytest.approx(4 + 0.6 * 36)
    assert error_statistics([]) == ErrorStatistics(0, 0)


@pytest.mark.parametrize(
    ("statistics", "is_within"),
    [
        (ErrorStatistics(5, 5, 3, 10, 20), True),  # the bound itself is allowed
        (ErrorStatistics(5, 5, 3.01, 10, 20), False),
        (ErrorStatistics(5, 5, 3, 10.01, 20), False),
        (ErrorStatistics(5, 5, 3, 10, 20.01), False),
        (ErrorStatistics(5, 4, 3, 10, 20), False),  # a row is missing
        (ErrorStatistics(5, 0), False),
    ],
)
def test_a_table_is_within_its_tolerance_if_every_figure_is(statistics, is_within):
    assert statistics.is_within(Tolerance(3, 10, 20)) is is_within


@pytest.fixture
def small_tables(tmp_path, monkeypatch):
    """Three tables instead of the shipped ones; their values are asked for by name."""
    monkeypatch.setattr(shipped, "folder", lambda: tmp_path)

    def write(**measured_us):
        for name, (measured, worst) in measured_us.items():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "t.csv").write_text(
                f"# tolerance: median {worst} %, p90 {worst} %, worst {worst} %\n"
                f"nodes,gpus,config,size_bytes,time_us_out_of_place\n2,16,default,1024,{measured}\n"
            )

    return write


def test_every_shipped_table_gets_a_verdict(small_tables):
    small_tables(a=(20, 1000), b=(1000, 1), c=("fast", 5))
    verdicts = {each.name: each.verdict for each in towpath.validate_shipped(jobs=1)}
    assert verdicts == {"a/t": "holds", "b/t": "exceeded", "c/t": "not run"}


def test_a_shipped_table_is_validated_by_its_name(small_tables):
    small_tables(a=(20, 1000))
    (row,) = towpath.validate("a/t").rows
    assert row["measured"] == 20 and row["predicted"] > 0
    assert "there is no table 'a/u'; choose one of a/t" in refusal(towpath.validate, "a/u")


def test_without_an_argument_all_tables_are_held_against_the_models(small_tables):
    small_tables(a=(20, 1000))
    lines = towpath_command("validate").stdout.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("a/t ") and lines[1].endswith("1000, 1000, 1000%   holds")
    assert lines[2] == "1 tables: 1 within tolerance"
    (found,) = json.loads(towpath_command("validate", "--json").stdout)["results"]
    assert found["name"] == "a/t" and found["statistics"]["predicted"] == 1


def test_a_tolerance_that_is_exceeded_fails_the_command(small_tables):
    small_tables(b=(1000, 1))
    assert CliRunner().invoke(cli.app, ["validate"]).exit_code == 1


def test_a_table_of_which_no_row_can_be_simulated_fails_the_command(tmp_path):
    path = str(table(tmp_path, "here,2,15,default,8,30,", "here,2,16,default,8,fast,"))
    done = CliRunner().invoke(cli.app, ["validate", path])
    assert isinstance(done.exception, ConfigError)  # which main() makes a sentence and exit code 2
    sentence = str(done.exception)
    assert sentence.startswith(
        f"{path}: none of its 2 rows could be simulated; the first error is: "
    )
    assert "15 GPUs" in sentence
    assert "15 GPUs" in done.stdout  # the rows are there all the same


def test_one_row_that_can_be_simulated_is_enough(tmp_path):
    path = table(tmp_path, "here,2,15,default,8,30,", "here,2,16,default,8,30,")
    assert CliRunner().invoke(cli.app, ["validate", str(path)]).exit_code == 0


def test_one_table_is_held_to_its_own_tolerance_as_all_are(small_tables):
    small_tables(a=(20, 1000), b=(1000, 1))
    held = CliRunner().invoke(cli.app, ["validate", "a/t"])
    assert held.exit_code == 0 and "1000, 1000, 1000%: holds" in held.stdout
    beyond = CliRunner().invoke(cli.app, ["validate", "b/t"])
    assert beyond.exit_code == 1 and "1, 1, 1%: exceeded" in beyond.stdout
    part = CliRunner().invoke(cli.app, ["validate", "b/t", "--group", "."])
    assert part.exit_code == 0 and "exceeded" not in part.stdout


def test_options_for_one_table_need_its_name():
    with pytest.raises(ConfigError, match="applies to one table; name it"):
        towpath_command("validate", "--half", "fit")


def test_a_shipped_table_is_found_by_its_name_and_others_by_their_path(tmp_path):
    assert find_table("fabric/neighbours").name == "neighbours.csv"
    assert find_table(str(tmp_path / "t.csv")) == tmp_path / "t.csv"
    assert "choose one of chip_collectives/eight_chips," in refusal(find_table, "fabric/neighbors")


def test_lines_say_what_was_found_and_what_is_allowed():
    summary = TableSummary(
        "a/b", "kind", ErrorStatistics(7, 5, 1, 2.25, 30), Tolerance(1.5, 3, 40), "exceeded"
    )
    words = summary_line(summary).split()
    assert words[:5] == ["a/b", "7", "1.0%", "2.2%", "30.0%"]
    assert summary_line(summary).endswith("1.5, 3, 40%         exceeded; 2 rows not simulated")
    not_run = TableSummary("c/d", "kind", ErrorStatistics(1, 0), None, "not run", "no trace")
    assert summary_line(not_run).endswith("none                not run: no trace")
    assert verdict_text([summary, not_run]) == "2 tables: 1 beyond it, 1 not run"


def test_a_table_of_a_release_has_a_group_per_collective_gpus_and_band(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "machine,nccl,op,gpus,size_bytes,time_us\n"
        "h100_sxm,2.29.2,all_gather,2,1024,5.3\n"
        "h100_sxm,2.29.2,alltoall,8,1048576,15.6\n"
        "h100_sxm,2.29.2,alltoall,8,67108864,221\n"
    )
    result = validate_table(path)
    assert [group["group"] for group in result.groups] == [
        "h100_sxm, all_gather, 2 GPUs, to 64 KiB",
        "h100_sxm, alltoall, 8 GPUs, to 4 MiB",
        "h100_sxm, alltoall, 8 GPUs, above",
    ]
    # A message of 128 KiB has two parts of 64 KiB, one of 8 MiB the four channels of a pair.
    assert [(row["chosen"], row["channels"]) for row in result.rows[1:]] == [
        ("send/Simple", 2), ("send/Simple", 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("note", "machine", "reason"),
    [
        ("not InfiniBand; GPUDirect-TCPXO", "dgx-h100", "measured over gpudirect-tcpxo"),
        ("not InfiniBand", "dgx-h100", "measured not over infiniband"),
        ("8 x 400G RoCE", "dgx-h100", "measured over roce"),
        ("8 x 400G RoCE", "gcp-a3-ultra", None),
        ("not InfiniBand; EFA", "aws-p5", None),
    ],
)
def test_a_network_that_a_note_names_or_denies_decides(tmp_path, note, machine, reason):
    path = table(tmp_path, f"here,2,16,default,1024,30,{note}")
    (row,) = validate_table(path, machine=machine).rows
    assert (row.get("error") is None) == (reason is None)
    assert reason is None or reason in row["error"]
