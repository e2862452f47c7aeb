# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The C++ library as a project of someone else's finds it: installed, and as a subfolder."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, build_folder, output_of
from inside.cli import write_kernel_project

pytestmark = pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")


def environment_without_python(folder: Path) -> dict[str, str]:
    """An environment in which no Python can be found: neither build may need one."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("cmake", "ninja", "g++", "gcc", "c++", "cc", "ld", "ar", "ranlib", "as", "ccache"):
        if (path := shutil.which(name)) is not None:
            (programs / name).symlink_to(path)
    return {"PATH": str(programs), "HOME": os.environ.get("HOME", "/")}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    """Where the C++ package is installed, from the build folder."""
    folder = tmp_path_factory.mktemp("installed")
    with build_folder() as build:
        output_of("cmake", "--install", build, "--component", "towpath_cpp", "--prefix", folder)
    return folder


def build_and_run(project: Path, *definitions: str, environment: dict[str, str]) -> str:
    """What the program of a project prints, built in a folder beside it."""
    build = project.parent / f"{project.name}-build"
    settings = [f"-D{definition}" for definition in definitions]
    output_of("cmake", "-S", project, "-B", build, "-G", "Ninja", *settings, env=environment)
    output_of("cmake", "--build", build, env=environment)
    return output_of(build / project.name, env=environment)


def guide_program() -> str:
    """The C++ program of docs/cpp.md."""
    text = (ROOT / "docs" / "cpp.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```cpp\n(.*?)```", text, re.DOTALL)
    return program


def test_a_new_kernel_builds_against_the_package_and_runs(prefix, tmp_path):
    project = tmp_path / "first-kernel"
    write_kernel_project(project)
    printed = build_and_run(
        project, f"CMAKE_PREFIX_PATH={prefix}", environment=environment_without_python(tmp_path)
    )
    assert re.fullmatch(r"[1-9][0-9]* cycles\n", printed)


def test_the_program_of_the_guide_is_the_one_of_a_new_project(tmp_path):
    _, source = write_kernel_project(tmp_path / "first-kernel")
    assert guide_program() == source.read_text()


def test_a_package_that_was_moved_still_works(prefix, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(prefix, moved)
    project = tmp_path / "kernel"
    write_kernel_project(project)
    printed = build_and_run(
        project, f"CMAKE_PREFIX_PATH={moved}", environment=environment_without_python(tmp_path)
    )
    assert "cycles" in printed
    assert str(ROOT) not in (moved / "lib/cmake/towpath/towpathTargets.cmake").read_text()


def test_a_version_that_is_not_the_installed_one_is_refused(prefix, tmp_path):
    project = tmp_path / "future"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.24)\nproject(future LANGUAGES CXX)\n"
        "find_package(towpath 99.0 REQUIRED)\n"
    )
    done = subprocess.run(
        ["cmake", "-S", project, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0
    assert 'compatible with requested version "99.0"' in done.stderr


def test_no_header_of_the_bindings_is_installed(prefix):
    headers = {path.relative_to(prefix / "include") for path in prefix.rglob("*.hpp")}
    assert Path("towpath/version.hpp") in headers
    assert Path("towpath/machine/load.hpp") in headers
    assert not [header for header in headers if "bindings" in header.parts]


@pytest.mark.long
def test_the_library_is_built_as_a_subfolder_without_python(tmp_path):
    project = tmp_path / "parent"
    write_kernel_project(project)
    cmake = project / "CMakeLists.txt"
    text, count = re.subn(
        r"find_package\(.*\)", f"add_subdirectory({ROOT} towpath)", cmake.read_text()
    )
    assert count == 1
    cmake.write_text(text)
    printed = build_and_run(project, environment=environment_without_python(tmp_path))
    assert "cycles" in printed
