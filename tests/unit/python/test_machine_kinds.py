# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A kind of machine needs an entry of KINDS and a class; no other place asks which kinds exist."""

import pickle

import pytest
from typer.testing import CliRunner

import towpath
from inside.cli import main as cli
from inside.machines import KINDS, Cluster, SpecFile, SpecKind, shipped
from inside.machines import machine as api_machine
from towpath import ConfigError, GpuCluster


class CircleOfFriends(GpuCluster):
    kind = "circle"

    @classmethod
    def _open(cls, name_or_file, *, ranks=None):
        return super()._open("ring", ranks=ranks or 3)


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
    file = tmp_path / "mine.yaml"
    file.write_text("form: circle\nname: mine\n")
    return str(file)


def command(*words):
    return CliRunner().invoke(cli.app, words, standalone_mode=False)


def test_every_kind_has_its_class():
    classes = api_machine.classes()
    assert list(classes) == list(KINDS)
    assert all(not found.__abstractmethods__ for found in classes.values())
    on_ranks = {kind for kind, found in classes.items() if issubclass(found, Cluster)}
    assert on_ranks == {"gpu_cluster", "chip_cluster", "mailbox_cluster"}
    for found in classes.values():
        assert getattr(towpath, found.__name__) is found
    assert set(shipped.kinds().values()) == set(KINDS)


def test_a_new_kind_is_loaded_run_and_tuned(circle):
    loaded = towpath.load(circle, ranks=5)
    assert (type(loaded), loaded.ranks) == (CircleOfFriends, 5)
    assert loaded.run("all_gather", size_bytes=4000).wrong == 0
    tuned = loaded.tune("all_gather", size_bytes=4000, channels=[1], protocols=["LL"], jobs=1)
    assert "5 of 5 GPUs" in tuned.where
    assert {timing.source.ranks for timing in tuned.timings} == {5}


def test_a_machine_is_opened_again_in_another_process_by_its_name_and_options(circle):
    for loaded in (
        towpath.load(circle, ranks=5),
        towpath.load("dgx-h100", hosts=3, ranks_per_host=2),
    ):
        again = pickle.loads(pickle.dumps(loaded))
        assert (type(again), again.ranks, again.spec) == (type(loaded), loaded.ranks, loaded.spec)
    with pytest.raises(TypeError, match="'ring' was not opened by `load`, so it cannot be pickled"):
        pickle.dumps(CircleOfFriends(shipped.machine("ring")))


def test_commands_know_a_new_kind(circle):
    result = command("run", "all_reduce", "--machine", circle, "--ranks", "4", "--sizes", "1K")
    assert result.exception is None and "4 of 4 GPUs" in result.output
    refused = command("bench", "noc-vc", "--machine", circle).exception
    assert isinstance(refused, ConfigError)
    assert "is a circle of friends; this command is for a chip" in str(refused)
    assert "Circles of friends: run, tune, show" in command("machines").output


def test_options_and_forms_of_a_new_kind_are_in_errors(circle):
    with pytest.raises(
        ConfigError, match="hosts applies to clusters of GPUs; .* is a circle of"
    ) as no:
        towpath.load(circle, hosts=2)
    assert no.value.field == "hosts"
    with pytest.raises(ConfigError, match="is not a circle of friends; it must be a spec whose"):
        CIRCLE.load(SpecFile("form: chip\n", "chip.yaml"))
