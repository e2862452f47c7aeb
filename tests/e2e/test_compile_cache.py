# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kept code of kernels is that of the sources, this user's alone, and made again if damaged."""

import os
import subprocess
import sys
import threading
import time

import pytest

import towpath

TT_KERNEL = """
#include "dataflow_api.h"
{slow}
void kernel_main() {{ *reinterpret_cast<volatile uint32_t*>(0x20000) = {value}; }}
"""
SLOW = "#include <map>\n#include <regex>"
CUDA_PROGRAM = """
#include <cstdio>
int main() { std::printf("done\\n"); return 0; }
"""


def run(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "towpath", "kernel", "run", *arguments],
        capture_output=True, text=True, timeout=120, cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **environment},
    )  # fmt: skip


def run_tt(folder):
    options = ("--machine", "wormhole", "--core", "0,0", "--read", "1,1:0x20000:4")
    return run(folder, "kernel.cpp", *options)


def write_tt(folder, value, slow=""):
    (folder / "kernel.cpp").write_text(TT_KERNEL.format(value=value, slow=slow))


@pytest.mark.parametrize("damage", [lambda text: text[: len(text) // 2], lambda _: b""])
@pytest.mark.parametrize("kind", ["kernels", "gpu"])
def test_a_damaged_entry_is_made_again(tmp_path, kind, damage):
    write_tt(tmp_path, 7)
    (tmp_path / "program.cu").write_text(CUDA_PROGRAM)

    def once():
        return run_tt(tmp_path) if kind == "kernels" else run(
            tmp_path, "program.cu", "--machine", "dgx-h100", "--pes", "1"
        )  # fmt: skip

    first = once()
    assert first.returncode == 0, first.stderr
    for entry in (tmp_path / "cache" / "towpath" / kind).glob("*.so"):
        entry.write_bytes(damage(entry.read_bytes()))
    again = once()
    assert again.returncode == 0, again.stderr
    assert ("done" if kind == "gpu" else "00000007") in again.stdout


def test_a_kernel_that_is_saved_while_it_is_compiled_is_compiled_again(tmp_path):
    write_tt(tmp_path, 1, SLOW)

    def save_when_compiling():
        cache = tmp_path / "cache" / "towpath" / "kernels"
        end = time.monotonic() + 60
        while time.monotonic() < end and not list(cache.glob("*.so.*.[ds]")):
            time.sleep(0.02)
        time.sleep(0.1)
        write_tt(tmp_path, 2, SLOW)

    editor = threading.Thread(target=save_when_compiling)
    editor.start()
    run_tt(tmp_path)
    editor.join()
    assert "00000002" in run_tt(tmp_path).stdout


def test_a_failed_compilation_leaves_nothing(tmp_path):
    (tmp_path / "kernel.cpp").write_text("void kernel_main() { undeclared(); }")
    assert run_tt(tmp_path).returncode == 2
    left = list((tmp_path / "cache" / "towpath" / "kernels").iterdir())
    assert [path for path in left if path.is_file() and "support" not in path.name] == []


def test_a_folder_that_others_may_write_to_is_refused(tmp_path):
    write_tt(tmp_path, 1)
    folder = tmp_path / "cache" / "towpath"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    done = run_tt(tmp_path)
    assert done.returncode != 0
    assert "can be written by other users" in done.stderr


def test_a_changed_header_of_a_cuda_program_is_compiled_again(tmp_path):
    file = tmp_path / "program.cu"
    file.write_text('#include "status.h"\nint main() { return STATUS; }\n')
    for status in (3, 4):
        (tmp_path / "status.h").write_text(f"#define STATUS {status}\n")
        assert towpath.kernel(file).run("dgx-h100", 1).status == status
