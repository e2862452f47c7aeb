# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What holds for every command: help, names of options, spellings, and options without effect."""

import json
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest
import typer.main

from conftest import towpath_command
from inside.cli import kernel
from inside.cli import main as cli
from inside.layout import CORE, MODELS, SPECS, UNNEEDED
from inside.machines import shipped
from towpath import ConfigError

RING = ("--machine", "ring", "--ranks", "4")
_HEAVY = {"numpy", "pydantic", "yaml", "jinja2", "rich", CORE}
_HELP = """
import sys
sys.argv = ["towpath", *{words!r}]
from towpath.__main__ import main
try:
    main()
finally:
    print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
"""


def all_commands():
    """Every command with its group, as words."""

    def walk(command, words):
        found = getattr(command, "commands", {})
        yield words
        for name, each in found.items():
            yield from walk(each, (*words, name))

    return list(walk(typer.main.get_command(cli.app), ()))


def options_of(words):
    """The options of a command by name, hidden ones left out."""
    command = typer.main.get_command(cli.app)
    for word in words:
        command = command.commands[word]
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    return {name: each for each in shown for name in each.opts}


def sentence(*words):
    """The one sentence with which a command refuses what was typed."""
    with pytest.raises(ConfigError) as caught:
        towpath_command(*words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [("--help",), ("run", "-h"), ("bench", "noc-vc", "-h"), ("tune",)]
)
def test_help_loads_nothing_that_takes_long(words):
    done = subprocess.run(
        [sys.executable, "-c", _HELP.format(words=words)], capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("Usage: towpath")
    assert _HEAVY & set(done.stderr.splitlines()) == set()


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_every_command_has_help_with_a_word_on_each_option(words):
    text = towpath_command(*words, "-h").stdout
    assert text == towpath_command(*words, "--help").stdout
    assert text.replace("root", "towpath").startswith("Usage: towpath")
    for name, option in options_of(words).items():
        assert name in text or name.upper() in text or option.metavar in text
        assert option.help


@pytest.mark.parametrize("group", ["", "tune", "export", "bench", "kernel", "shmem", "new"])
def test_the_list_of_commands_fits_80_columns(group):
    commands = towpath_command(*group.split(), "--help").stdout.partition("\n")[2]
    assert "..." not in commands
    assert max(map(len, commands.splitlines())) <= 80


def test_the_version_is_that_of_the_package():
    assert towpath_command("--version").stdout == f"towpath {version('towpath')}\n"


@pytest.mark.parametrize("group", [(), ("bench",), ("tune",), ("export",), ("new",)])
def test_a_group_without_a_command_is_its_help(group):
    assert towpath_command(*group).stdout == towpath_command(*group, "-h").stdout


def test_help_is_a_command_too():
    text = towpath_command("help", "bench", "ethernet").stdout
    assert (
        text.split("\n", 1)[1]
        == towpath_command("bench", "ethernet", "-h").stdout.split("\n", 1)[1]
    )
    text = towpath_command("help").stdout
    headings = [*cli.Commands.listed, "Other"]
    assert [f"\n{heading}:\n" in text for heading in headings] == [True] * len(headings)


def test_a_shell_completes_the_names_of_machines(monkeypatch):
    monkeypatch.setenv("_TOWPATH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "towpath show gal")
    monkeypatch.setenv("COMP_CWORD", "2")
    done = subprocess.run(
        [sys.executable, "-m", "towpath"], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["galaxy", "galaxy-torus"]


# --- what a command loads -------------------------------------------------------------------------

_RUN = ("run", "all_reduce", "--algorithm", "ring", "--protocol", "Simple", "--sizes", "4K")
_NEVER = {
    "asyncio", "defusedxml", "jinja2", "multiprocessing", "rich", "ssl", "statistics",
    *UNNEEDED,
}  # fmt: skip


def loaded_by(*words):
    """The modules of a process in which a command has just ended."""
    done = subprocess.run(
        [sys.executable, "-c", _HELP.format(words=words)], capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip
    return set(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("words", "specs"),
    [
        ((*_RUN, "--machine", "ring", "--ranks", "4"), ("machine",)),
        ((*_RUN, "--machine", "dgx-h100", "--hosts", "1"), ("machine",)),
        (("run", "all_reduce", "--machine", "ring", "--ranks", "2", "--sizes", "64"), ("machine",)),
        ((*_RUN, "--machine", "n300"), ("chip_cluster", "chip")),
        ((*_RUN, "--machine", "carvnet", "--ranks", "2"), ("mailbox_cluster",)),
        (("show", "wormhole"), ("chip",)),
        (("machines",), ()),
        (("algorithms",), ()),
    ],
)
def test_a_command_loads_only_what_it_needs(words, specs):
    loaded = loaded_by(*words)
    assert _NEVER & loaded == set()
    assert set(SPECS.values()) & loaded == {SPECS[kind] for kind in specs}


@pytest.mark.parametrize("machine", ["ring", "n300", "carvnet"])
@pytest.mark.parametrize("data", ["--data", "--no-data"])
def test_no_run_loads_numpy(machine, data):
    assert "numpy" not in loaded_by(*_RUN, "--machine", machine, data)


def test_a_run_builds_the_checks_of_its_own_machine_only():
    built = (
        "import sys\n"
        f"Frozen = sys.modules[{MODELS!r}].Frozen\n"
        "def below(model):\n"
        "    return [model, *(each for found in model.__subclasses__() for each in below(found))]\n"
        "print(*{each.__name__ for each in below(Frozen) if each.__pydantic_complete__})\n"
    )
    code = f"import towpath\ntowpath.load('dgx-h100').run(size_bytes=64, data=False)\n{built}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["TemplateSpec"]


def test_the_list_of_commands_says_of_each_what_its_own_help_begins_with():
    group = typer.main.get_command(cli.app)
    listed = [each for under in cli.Commands.listed.values() for each in under.items()]
    assert {name for name, _ in listed} == set(group.commands) - {"help"}
    for name, (_, summary) in listed:
        own = group.commands[name].help.split("\n\n")[0]
        assert " ".join(own.split()) == summary


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "metavars"),
    [
        ("--machine", {"NAME"}),
        ("--jobs", {"N"}),
        ("--seed", {"N"}),
        ("--out", {"FOLDER", "PATH"}),
        ("--live", {"RANKS", None}),
    ],
)
def test_an_option_has_one_name_in_all_commands(name, metavars):
    found = [options_of(words) for words in all_commands()]
    having = [options[name] for options in found if name in options]
    assert len(having) > 1 and {option.metavar for option in having} == metavars
    former = {"--report", "--page", "--folder", "--processes", "--output"}
    assert not any(former & set(options) for options in found)


def test_every_command_that_finds_something_out_prints_json():
    without = {(), ("help",), ("bench",), ("tune",), ("export",), ("new",), ("new", "kernel")}
    without.update([("import",), ("nccl",)])
    without |= {("kernel",), ("kernel", "run")}  # the options are those of the file's kind
    without |= {("shmem",), ("shmem", "run")}  # what a program prints is its own
    without |= {("nccl", "cmake"), ("nccl", "compile"), ("nccl", "run")}
    without.add(("shmem", "flags"))  # for a compiler
    for words in all_commands():
        assert ("--json" in options_of(words)) == (words not in without), words


@pytest.mark.parametrize("word", ["allreduce", "all-reduce", "AllReduce"])
def test_a_collective_in_any_spelling(word):
    text = towpath_command("run", word, *RING, "--sizes", "1K").stdout
    assert text.startswith("# all_reduce, ranks 4")
    assert "tune all_reduce" in towpath_command("tune", word, "-h").stdout


def test_short_names_of_algorithm_protocol_and_type():
    words = ("--algorithm", "one-shot", "--protocol", "ll", "--dtype", "half", "--op", "mean")
    run = json.loads(
        towpath_command("run", "all_reduce", *RING, "--sizes", "64", *words, "--json").stdout
    )["results"][0]
    (row,) = run["rows"]
    assert (row["schedule"], row["protocol"]) == ("one_shot_all_reduce", "LL")
    assert (run["dtype"], run["op"]) == ("float16", "avg")


def test_options_of_nccl_tests():
    words = "-b 8 -e 1K -f 4 -g 4 -d half -o max".split()
    found = json.loads(
        towpath_command("run", "all_reduce", "--machine", "dgx-h100", *words, "--json").stdout
    )["results"][0]
    assert (found["ranks"], found["dtype"], found["op"]) == (4, "float16", "max")
    assert found["where"] == "dgx-h100, 4 of 8 GPUs on 1 host"
    assert [row["size_bytes"] for row in found["rows"]] == [8, 32, 128, 512]


@pytest.mark.slow
def test_more_gpus_than_a_host_has_are_whole_hosts():
    words = "-b 1K -e 1K -g 24 --no-data".split()
    found = json.loads(
        towpath_command("run", "all_reduce", "--machine", "dgx-h100", *words, "--json").stdout
    )["results"][0]
    assert found["where"] == "dgx-h100, 24 of 24 GPUs on 3 hosts"


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("run all_reduce --machine dgx-h10", "dgx-h100"),
        ("run all_reduce --machine carvnett", "carvnet"),
        ("bench ethernet --machine t300", "t3000"),
        ("bench noc-vc --machine wormhol", "wormhole"),
        ("show galaxi", "galaxy"),
        ("run all_redcue --machine ring", "all_reduce"),
        ("run all_reduce --machine ring --algorithm rng", "ring"),
        ("run all_reduce --machine ring --protocol LL12", "LL128"),
        ("run all_reduce --machine ring --dtype float23", "float32"),
        ("run all_reduce --machine ring --op summ", "sum"),
        ("verify all_reduec --ranks 2", "all_reduce"),
    ],
)
def test_a_near_miss_is_suggested(words, near):
    assert f"did you mean '{near}'?" in sentence(*words.split())


def test_an_unknown_machine_gets_every_name_that_is_valid_there():
    for kind in ("gpu_cluster", "chip_cluster", "mailbox_cluster"):
        for name in shipped.names(kind):
            assert name in sentence("run", "all_reduce", "--machine", "xyzzy")
    assert all(name in sentence("show", "xyzzy") for name in shipped.kinds())


# --- options without effect -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        ("run all_reduce --live 2 --data", "--data requires --machine"),
        ("run all_reduce --live 2 --no-data", "--data requires --machine"),
        ("run all_reduce --live 2 --hosts 2", "--hosts requires --machine"),
        ("run all_reduce --machine ring --iterations 20", "--iterations requires --live"),
        ("run all_reduce --machine ring --pin", "--pin requires --live"),
        ("run all_reduce --machine ring --timeout 30", "--timeout requires --live"),
        ("run all_reduce --machine ring --trace-size 1K", "--trace-size requires --trace or --out"),
        (
            "run --schedule x.xml --machine ring --protocol Simple",
            "--protocol applies to Towpath's own",
        ),
        (
            "run --schedule x.xml --machine ring --root 0",
            "--root applies to Towpath's own schedules",
        ),
        ("run all_reduce --machine t3000 --protocol LL", "protocol"),
        ("run all_reduce --machine carvnet --protocol LL128", "protocol"),
        ("run all_reduce --machine ring -b 8 --sizes 8", "--sizes and -b, -e, -f exclude"),
        ("run all_reduce --machine dgx-h100 -g 4 --hosts 1", "--hosts and -g exclude each other"),
        ("run broadcast --machine t3000 --ranks 4", "ranks applies to clusters of GPUs"),
        ("bench mailbox --live --seed 3", "--seed applies to --machine"),
        ("bench mailbox --machine carvnet --cores 0,1", "--cores is for --live"),
        ("tune all_reduce --machine ring --warmup 5", "--warmup requires --live"),
        ("validate --half fit", "--half applies to one table"),
    ],
)
def test_an_option_without_effect_is_refused(words, phrase, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert phrase in sentence(*words.split())
    assert list(tmp_path.iterdir()) == []


def test_a_size_that_no_schedule_cuts_is_said_to_be_rounded():
    text = towpath_command("run", "all_reduce", *RING, "--sizes", "7,1.5K").stdout
    assert "# sizes are rounded to whole elements in each chunk: 7 to 4 bytes" in text
    assert [line.split()[0] for line in text.splitlines() if line[0] == " "] == ["4", "1536"]


def test_part_of_a_host_is_named_as_the_way_out():
    found = sentence("run", "all_reduce", "--machine", "dgx-h100", "--ranks", "4")
    assert "--ranks-per-host 4 --hosts 1" in found


# --- schedules ------------------------------------------------------------------------------------


def test_a_collective_is_verified_without_a_file():
    words = "verify all_reduce --ranks 8 --sizes 1M,64M --json".split()
    printed = json.loads(towpath_command(*words).stdout)
    [found] = printed["results"]
    assert found["is_correct"] and found["hangs_from_bytes"] is None
    assert [verdict["size_bytes"] for verdict in found["verdicts"]] == [1 << 20, 64 << 20]
    assert list(printed["provenance"]["schedules"]) == ["ring_all_reduce"]


def test_a_schedule_is_verified_from_standard_input(tmp_path):
    text = towpath_command("export", "all_gather", "-", "--ranks", "3").stdout
    done = subprocess.run(
        [sys.executable, "-m", "towpath", "verify", "-", "--sizes", "1M"],
        input=text, capture_output=True, text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ring_all_gather: all_gather of 3 ranks")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        ("verify all_reduce", "needs --ranks"),
        ("verify plan.json", "plan.json: has no 'collective'"),
        ("verify ring.xml --channels 2", "--channels applies to a collective"),
        ("export all_reduce ring.xml --ranks 2", "exists; --force replaces it"),
    ],
)
def test_what_cannot_be_verified_or_exported(words, phrase, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.json").write_text('{"name": "allreduce", "gpus": []}')
    towpath_command("export", "all_reduce", "ring.xml", "--ranks", "4")
    before = (tmp_path / "ring.xml").read_text()
    assert phrase in sentence(*words.split())
    assert (tmp_path / "ring.xml").read_text() == before


def test_export_says_what_it_wrote_and_takes_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "export all_reduce g.xml --ranks 8 --algorithm grid --columns 4 --force".split()
    done = towpath_command(*words)
    assert done.stdout == ""
    assert done.stderr.startswith("written: g.xml, grid_all_reduce of 8 ranks, Simple, 1 channel")
    row = towpath_command("export", "all_reduce", "-", "--ranks", "8", "--algorithm", "grid").stdout
    assert (tmp_path / "g.xml").read_text() != row


# --- results --------------------------------------------------------------------------------------


def test_every_result_says_what_it_was_made_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = json.loads(
        towpath_command(
            "run", "all_reduce", *RING, "--sizes", "1K", "--out", "o", "--json",
            "--algorithm", "ring",
        ).stdout
    )  # fmt: skip
    made = found["provenance"]
    assert made["towpath"] == version("towpath") and set(made["machines"]) == {"ring"}
    assert set(made["schedules"]) == {"ring_all_reduce"}
    assert json.loads((tmp_path / "o" / "study.json").read_text())["provenance"] == made
    page = (tmp_path / "o" / "study.html").read_text()
    assert f"Towpath {made['towpath']}, {made['date']}" in page
    assert f"machine ring {made['machines']['ring']}" in page


def test_machines_are_a_table_by_kind():
    lines = towpath_command("machines").stdout.splitlines()
    assert lines[0].startswith("Clusters of GPUs")
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(names) == sorted(shipped.kinds())
    listed = json.loads(towpath_command("machines", "--json").stdout)["results"]
    assert [machine["name"] for machine in listed] == names
    assert {machine["kind"] for machine in listed} == {
        "gpu_cluster", "chip_cluster", "mailbox_cluster", "chip", "host",
    }  # fmt: skip


def test_algorithms_and_show_as_json():
    listed = json.loads(towpath_command("algorithms", "--json").stdout)["results"]
    assert {"ring_all_reduce", "ring_broadcast"} <= {algorithm["name"] for algorithm in listed}
    shown = json.loads(towpath_command("show", "t3000", "--json").stdout)
    assert shown["results"][0]["kind"] == "chip_cluster"
    assert "t3000" in shown["provenance"]["machines"]


def test_a_command_has_at_most_a_dozen_options_above_the_advanced_ones():
    found = {words: options_of(words) for words in all_commands() if words}
    for suffix in (".cpp", ".cu"):
        command = typer.main.get_command(import_module(kernel.COMMANDS[suffix][0]).app)
        found["kernel", "run", suffix] = {
            name: each for each in command.params for name in each.opts
        }
    for words, options in found.items():
        common = {
            each.name for name, each in options.items()
            if name.startswith("-") and getattr(each, "rich_help_panel", None) is None
        }  # fmt: skip
        assert len(common - {"help"}) <= 12, (words, common)
