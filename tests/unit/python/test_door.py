# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes and habits of newcomers: names, help, pipes, full disks, huge sizes."""

import os
import subprocess
import sys

import pytest

import towpath
from conftest import towpath_command
from inside.pages import files

PROGRAM = r"""
#include <cstdio>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::puts(argv[i]);
  return 0;
}
"""


@pytest.mark.parametrize("name", ["DGX-H100", "dgx_h100", "Dgx_H100"])
def test_case_and_hyphens_do_not_matter_in_the_name_of_a_machine(name):
    assert towpath.load(name).name == "dgx-h100"
    text = towpath_command("run", "all_reduce", "--machine", name, "--sizes", "1K").stdout
    assert "simulated on dgx-h100" in text


def test_a_name_may_say_how_many_hosts():
    assert towpath.load("dgx-h100:4").ranks == 32
    text = towpath_command(
        "expect", "all_reduce", "--machine", "dgx-h100:1", "--sizes", "1K"
    ).stdout
    assert "8 of 8 GPUs on 1 host" in text
    with pytest.raises(towpath.ConfigError) as caught:
        towpath.load("dgx-h100:4", hosts=2)
    assert caught.value.field == "hosts"
    with pytest.raises(towpath.ConfigError) as caught:
        towpath.load("t3000:2")
    assert caught.value.field == "hosts"


@pytest.mark.parametrize(
    "words", [("kernel", "run", "program.cu", "--help"), ("kernel", "run", "program.cu", "-h")]
)
def test_the_help_of_a_kernel_lists_the_options_of_its_kind(words):
    text = towpath_command(*words).stdout
    for option in ("--machine", "--pes", "--live", "--profile", "--trace", "--flag"):
        assert option in text, option


def test_words_behind_two_hyphens_belong_to_the_program(tmp_path, capfd):
    file = tmp_path / "program.cu"
    file.write_text(PROGRAM)
    arguments = ["-b", "8", "--live", "--help"]
    towpath_command("kernel", "run", str(file), "--pes", "1", "--live", "--", *arguments)
    assert [line for line in capfd.readouterr().out.splitlines() if line in arguments] == arguments


def test_a_closed_pipe_is_not_wrong_data():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "towpath", "machines"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_names_the_file_and_leaves_no_half_of_it(tmp_path, monkeypatch):
    def full(number, *_, **__):
        os.close(number)
        raise OSError(28, "No space left on device")

    file = tmp_path / "machine.svg"
    file.write_text("what was there")
    monkeypatch.setattr(files, "open", full, raising=False)
    with pytest.raises(OSError) as caught:
        towpath_command("show", "dgx-h100", "--svg", str(file))
    assert caught.value.filename == str(file)
    assert [path.name for path in tmp_path.iterdir()] == ["machine.svg"]
    assert file.read_text() == "what was there"


@pytest.mark.slow
@pytest.mark.parametrize("size", ["16G", pytest.param("1T", marks=pytest.mark.long)])
def test_huge_arrays_are_chosen_by_smaller_ones(size):
    """At 16 GiB a schedule was chosen that takes 1.2 times as long."""
    machine = towpath.load("dgx-h100", hosts=1)
    chosen = machine.run(size_bytes=size, data=False)
    named = machine.run(
        size_bytes=size, data=False, algorithm="two_shot_multimem", protocol="Simple", channels=10
    )
    assert chosen.time_us <= 1.03 * named.time_us
    assert "line" in chosen.row.choice
