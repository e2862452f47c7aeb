# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL from source. `$TOWPATH_NCCL_SOURCE` names its repository, which these tests need."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from conftest import towpath_command
from towpath import ConfigError

pytestmark = pytest.mark.slow
RELEASE = "2.21.5"


@pytest.fixture(scope="module")
def source():
    named = os.environ.get("TOWPATH_NCCL_SOURCE")
    if not named:
        pytest.skip("TOWPATH_NCCL_SOURCE names no repository of NCCL")
    return named


def problem_of(*words):
    with pytest.raises(ConfigError) as caught:
        towpath_command(*words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_release_is_built_once(source):
    first = towpath_command("nccl", "build", source, "--release", RELEASE)
    program = Path(first.stdout.split(": ")[1].strip())
    time_ns = program.stat().st_mtime_ns
    assert towpath_command("nccl", "build", source, "--release", RELEASE).stdout == first.stdout
    assert program.stat().st_mtime_ns == time_ns
    assert RELEASE in towpath_command("nccl", "list").stdout.split()


def test_a_release_that_is_not_there_is_one_sentence_with_its_neighbors(source):
    assert problem_of("nccl", "build", source, "--release", "2.21.99").endswith(
        "has no tag for release '2.21.99'; it has v2.21.5-1"
    )
    assert "too old" in problem_of("nccl", "build", source, "--release", "2.17.1")


def test_a_source_that_does_not_compile_is_one_sentence_with_the_first_error(source, tmp_path):
    archive = subprocess.run(
        ["git", "-C", source, "archive", f"v{RELEASE}-1"], check=True, capture_output=True
    )
    subprocess.run(["tar", "x", "-C", tmp_path], input=archive.stdout, check=True)
    broken = tmp_path / "src" / "channel.cc"
    broken.write_text(f"#error this is broken\n{broken.read_text()}")
    found = problem_of("nccl", "build", str(tmp_path))
    assert found == (
        f"NCCL {RELEASE} cannot be built: src/channel.cc:1:2: error: #error this is broken"
    )
    shutil.rmtree(tmp_path / "src")
    assert "has no folder src" in problem_of("nccl", "build", str(tmp_path))


def test_a_folder_without_nccl_is_one_sentence(tmp_path):
    assert "has no folder src" in problem_of("nccl", "build", str(tmp_path))
    (tmp_path / "src").mkdir()
    assert "holds no source of NCCL" in problem_of("nccl", "build", str(tmp_path))
    assert "there is no folder" in problem_of("nccl", "build", str(tmp_path / "absent"))


def test_a_release_is_unpacked_by_a_python_without_filters_of_archives(tmp_path, monkeypatch):
    """Python 3.11.2, which Debian 12 has, and 3.10 before 3.10.12."""

    def extract_all(archive, path=".", members=None, *, numeric_owner=False):
        raise AssertionError("a member of an archive can lie outside of the folder")

    monkeypatch.setattr(tarfile.TarFile, "extractall", extract_all)
    for file in ("makefiles/version.mk", "src/init.cc"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text("NCCL_MAJOR := 2\n")
    author = ("-c", "user.name=author", "-c", "user.email=author@host")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"], ["tag", "v2.99.0-1"]):
        subprocess.run(["git", "-C", str(tmp_path), *author, *words], check=True)
    (tmp_path / "makefiles" / "version.mk").unlink()
    found = problem_of("nccl", "build", str(tmp_path), "--release", "2.99.0")
    assert found.endswith("src/nccl.h.in or makefiles/version.mk is missing")
