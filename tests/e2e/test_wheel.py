# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The wheel: what is in it, what it needs, and that it runs outside the checkout."""

import re
import subprocess
import sys
import venv

import pytest

from conftest import ROOT, build_folder, output_of
from inside.machines import shipped

# What every Linux with a Python has: the C and the C++ runtime, and the loader.
SYSTEM_LIBRARIES = re.compile(
    r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux.*)\.so"
)


def compiled_module(installed):
    (path,) = (installed / "towpath").glob("_core.*.so")
    return path


def test_the_module_needs_the_c_and_cpp_runtime_only(installed):
    listed = subprocess.run(
        ["readelf", "--dynamic", compiled_module(installed)], capture_output=True, text=True
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", listed)
    assert needed
    assert [name for name in needed if not SYSTEM_LIBRARIES.match(name)] == []
    assert "RUNPATH" not in listed
    assert "RPATH" not in listed


def test_the_module_leaves_no_function_of_those_libraries_to_the_system(installed):
    listed = subprocess.run(
        ["nm", "--dynamic", "--undefined-only", "--demangle", compiled_module(installed)],
        capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "std::" in listed
    assert re.findall(r"\b(?:fmt|hwy|boost)::\S*", listed) == []


def test_machines_templates_and_licence_are_in_it(installed):
    package = installed / "towpath"
    for name in shipped.names("chip"):
        assert (package / "specs" / "shipped" / f"{name}.yaml").is_file()
    assert (package / "cli" / "new_kernel" / "kernel.cpp.in").is_file()
    assert list(installed.glob("towpath-*.dist-info/licenses/LICENSE")) or list(
        installed.glob("towpath-*.dist-info/LICENSE")
    )
    # The library's headers are not; those of the backend for PyTorch, of penny's kernels and of
    # virtual GPUs are compiled where they are used.
    folders = {path.parent.name for path in installed.rglob("*.hpp")}
    assert folders == {"csrc", "penny", "virtual_gpu", "device", "nccl", "replicated", "timed"}
    assert (package / "torch" / "csrc" / "backend.cpp").is_file()


def test_a_source_that_was_removed_does_not_stay_installed(tmp_path):
    sources = tmp_path / "towpath" / "virtual_gpu_source" / "towpath" / "virtual_gpu"
    with build_folder() as build:
        install = ("cmake", "--install", build, "--component", "towpath", "--prefix", tmp_path)
        output_of(*install)
        installed = sorted(sources.rglob("*.cpp"))
        (sources / "device" / "earlier.cpp").touch()
        output_of(*install)
    assert installed
    assert sorted(sources.rglob("*.cpp")) == installed


def test_the_command_runs_outside_the_checkout(run_installed, installed):
    where = run_installed("-c", "import towpath; print(towpath.__file__)")
    assert where.startswith(str(installed))
    printed = run_installed(
        "-m", "towpath", "run", "all_reduce", "--machine", "ring", "--sizes", "1K", "--json"
    )
    assert '"wrong": 0' in printed or '"wrong":0' in printed


@pytest.mark.long
def test_a_source_distribution_builds_a_wheel_that_installs_into_an_empty_environment(tmp_path):
    build = "from scikit_build_core.build import build_sdist; print(build_sdist(r'{}'))"
    name = subprocess.run(
        [sys.executable, "-c", build.format(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()[-1]  # fmt: skip
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    # Isolated: pip fetches what pyproject.toml says the build needs, and nothing else is there.
    subprocess.run([python, "-m", "pip", "install", "--quiet", tmp_path / name], check=True)
    printed = subprocess.run(
        [python, "-m", "towpath", "machines"], cwd=tmp_path, capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    assert "dgx-h100" in printed
