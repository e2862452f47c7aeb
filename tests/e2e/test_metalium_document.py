# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The C++ samples of the multichip guide: all compile, and its ring ping runs with its figures."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from pathlib import Path

import document_programs
import pytest

from towpath import SourceKernel, load
from towpath.errors import TowpathError

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted((ROOT.parent / "shared" / "seeds").glob("000_*.txt"))
LIBRARY = ROOT / "build" / "libtowpath.a"

pytestmark = pytest.mark.skipif(
    not DOCUMENTS, reason="needs the multichip guide in ../shared/seeds"
)


@pytest.fixture(scope="module")
def samples() -> list[str]:
    found = document_programs.samples(DOCUMENTS[0])
    assert len(found) == 17
    return found


@pytest.mark.parametrize("name", ["merged", "handshake", "teardown", "receiver", "sender"])
def test_sample_of_a_kernel_compiles(samples: list[str], name: str) -> None:
    text = document_programs.sample_kernels(samples)[name]
    kernel = SourceKernel(f"{name}.cpp", core=(0, 8), processor="ethernet", text=text)
    # It runs without its peer, or without its arguments; compiled it is by then.
    try:
        load("wormhole").run_kernels([kernel], cycles_max=100_000)
    except (TowpathError, ValueError, RuntimeError) as error:
        assert "does not compile" not in str(error)


@pytest.fixture(scope="module")
def program(samples: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host program and its kernels in one folder."""
    if not LIBRARY.is_file():
        pytest.skip("needs the C++ library; run make build")
    folder = tmp_path_factory.mktemp("ring_ping")
    for name, text in document_programs.sample_kernels(samples).items():
        (folder / f"{name}.cpp").write_text(text)
    (folder / "setup.cpp").write_text(document_programs.SETUP)
    (folder / "host.cpp").write_text(document_programs.host(samples))
    subprocess.run(
        [
            os.environ.get("CXX", "g++"), "-std=c++20", "-w", "host.cpp", f"-I{ROOT}/include",
            f"-I{ROOT}/src", f"-I{ROOT}/build/generated", str(LIBRARY), "-lfmt", "-lhwy",
            "-lboost_context", "-lpthread", "-ldl", "-o", "ring_ping",
        ],
        cwd=folder,
        check=True,
    )  # fmt: skip
    return folder


def round_trip_ns(program: Path, hops: int, size_bytes: int) -> float:
    """Median time of a packet round the ring, as its master measures it at 1 GHz."""
    ran = subprocess.run(
        ["./ring_ping", str(hops), str(size_bytes)],
        cwd=program,
        env={**os.environ, "TOWPATH_MACHINE": "t3000"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return statistics.median(map(int, re.findall(r"round trip (\d+)", ran.stdout)))


def test_the_ring_ping_takes_as_long_as_the_document_says(program: Path) -> None:
    # "approximately 690ns latency per hop for an 8 chip ring"; with 12 "slightly higher".
    assert round_trip_ns(program, 8, 16) / 8 == pytest.approx(690, rel=0.05)
    assert round_trip_ns(program, 12, 16) / 12 == pytest.approx(690, rel=0.05)


# Round trips of ubench4, in ns (validation/ethernet/guide_points.csv).
@pytest.mark.parametrize(("size_bytes", "measured_ns"), [(16, 5690), (512, 6024), (1024, 6761)])
def test_round_trips_are_those_of_the_plot(
    program: Path, size_bytes: int, measured_ns: int
) -> None:
    # The sample sends 16 bytes per command, the default; the plot is of a command per packet.
    sender = program / "sender.cpp"
    text = sender.read_text()
    whole = text.replace("page_size, i);", "page_size, i, page_size, page_size / 16);")
    assert whole != text
    sender.write_text(whole)
    found = round_trip_ns(program, 8, size_bytes)
    sender.write_text(text)
    print(size_bytes, measured_ns, found)
    assert found == pytest.approx(measured_ns, rel=0.05)
