# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath new kernel`: what it writes; tests/e2e/test_installed_library.py builds and runs it."""

from importlib import metadata

import pytest

from conftest import refusal, towpath_command
from inside.cli import write_kernel_project


def test_a_project_has_two_files_with_its_name(tmp_path):
    cmake, source = write_kernel_project(tmp_path / "my-kernel")
    assert [cmake.name, source.name] == ["CMakeLists.txt", "my-kernel.cpp"]
    text = cmake.read_text()
    assert "add_executable(my-kernel my-kernel.cpp)" in text
    assert f"find_package(towpath {metadata.version('towpath')} REQUIRED)" in text
    assert "@" not in text + source.read_text()


def test_the_command_says_what_it_wrote_and_how_to_build_it(tmp_path):
    printed = towpath_command("new", "kernel", str(tmp_path / "first")).stdout
    assert "first.cpp" in printed
    assert "cmake --build" in printed


def test_a_file_that_is_there_is_left_alone(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "mine.cpp").write_text("int main() {}\n")
    assert "mine.cpp: exists already" in refusal(write_kernel_project, mine)
    assert (mine / "mine.cpp").read_text() == "int main() {}\n"
    assert not (mine / "CMakeLists.txt").exists()


@pytest.mark.parametrize("name", ["2nd", "a b", "ü", "-x", "a;b"])
def test_a_name_that_cmake_would_not_take_is_refused(tmp_path, name):
    assert "cannot be a project's name" in refusal(write_kernel_project, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refusal(write_kernel_project, tmp_path / "file" / "kernel")
