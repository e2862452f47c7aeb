# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What a kind of machine needs: an entry of KINDS, one of SITES, and a class; no other place asks
which kinds there are."""

import pytest
from typer.testing import CliRunner

import towpath
from inside.cli import main as cli
from inside.machines import KINDS, Cluster, SpecFile, SpecKind, shipped
from inside.machines import machine as api_machine
from inside.tuning import SITES, GpuSite, TuneRequest, find_target
from towpath import ConfigError, GpuCluster


class CircleSite(GpuSite):
    def __init__(self, name_or_file, *, ranks=None):
        super().__init__("ring", ranks=ranks or 3)


class CircleOfFriends(GpuCluster):
    kind = "circle"


CIRCLE = SpecKind(
    name="circle",
    words="circle of friends",
    forms=("circle",),
    parse=lambda file: shipped.machine("ring"),
    expected="a spec whose form is 'circle'",
    options=("ranks",),
)


@pytest.fixture
def circle(monkeypatch, tmp_path):
    classes = {**api_machine.classes(), "circle": CircleOfFriends}
    monkeypatch.setattr(api_machine, "classes", lambda: classes)
    monkeypatch.setitem(KINDS, "circle", CIRCLE)
    monkeypatch.setitem(SITES, "circle", CircleSite)
    file = tmp_path / "mine.yaml"
    file.write_text("form: circle\nname: mine\n")
    return str(file)


def command(*words):
    return CliRunner().invoke(cli.app, words, standalone_mode=False)


def test_every_kind_has_its_class_and_its_site():
    classes = api_machine.classes()
    assert list(classes) == list(KINDS)
    on_ranks = {kind for kind, found in classes.items() if issubclass(found, Cluster)}
    assert set(SITES) == on_ranks
    for found in classes.values():
        assert getattr(towpath, found.__name__) is found
    assert set(shipped.kinds().values()) == set(KINDS)


def test_a_new_kind_is_loaded_run_and_tuned(circle):
    loaded = towpath.load(circle, ranks=5)
    assert (type(loaded), loaded.ranks) == (CircleOfFriends, 5)
    assert loaded.run("all_gather", size_bytes=4000).wrong == 0
    target = find_target(TuneRequest(circle, ranks=5))
    assert (target.options.ranks, target.kind) == (5, "simulated")


def test_commands_know_a_new_kind(circle):
    result = command("run", "all_reduce", "--machine", circle, "--ranks", "4", "--sizes", "1K")
    assert result.exception is None and "4 of 4 GPUs" in result.output
    refused = command("bench", "noc-vc", "--machine", circle).exception
    assert isinstance(refused, ConfigError)
    assert "is a circle of friends; this command is for a chip" in str(refused)
    assert "Circles of friends: run, tune, show" in command("machines").output


def test_options_and_forms_of_a_new_kind_are_in_errors(circle):
    with pytest.raises(ConfigError, match="hosts is for clusters of GPUs; .* is a circle of") as no:
        towpath.load(circle, hosts=2)
    assert no.value.field == "hosts"
    with pytest.raises(ConfigError, match="is not a circle of friends; it must be a spec whose"):
        CIRCLE.load(SpecFile("form: chip\n", "chip.yaml"))
