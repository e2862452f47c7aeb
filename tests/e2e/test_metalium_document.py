# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The C++ samples of the multichip guide: all compile, and its ring ping runs with its figures."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from pathlib import Path

import pytest

from inside.reproduce import guide_samples
from towpath import SourceKernel, TowpathError, load

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted((ROOT.parent / "shared" / "seeds").glob("000_*.txt"))
LIBRARY = ROOT / "build" / "libtowpath.a"

pytestmark = pytest.mark.skipif(
    not DOCUMENTS, reason="needs the multichip guide in ../shared/seeds"
)


@pytest.fixture(scope="module")
def samples() -> list[str]:
    found = guide_samples.samples(DOCUMENTS[0].read_text())
    assert len(found) == 17
    return found


# What ends each of them on a core alone, once it is compiled; the teardown has nothing to wait for.
@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("merged", "in eth_send_packet at .* is connected to no other core"),
        ("handshake", "in eth_send_bytes at .* is connected to no other core"),
        ("teardown", ""),
        ("receiver", "it was not given"),
        ("sender", "it was not given"),
    ],
)
def test_sample_of_a_kernel_compiles_and_runs(samples: list[str], name: str, ending: str) -> None:
    text = guide_samples.sample_kernels(samples)[name]
    kernel = SourceKernel(f"{name}.cpp", core=(0, 8), processor="ethernet", text=text)
    if ending == "":
        assert load("wormhole").run_kernels([kernel]).time_ns > 0
        return
    with pytest.raises(TowpathError, match=ending):
        load("wormhole").run_kernels([kernel], cycles_max=100_000)


@pytest.fixture(scope="module")
def program(samples: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host program and its kernels in one folder."""
    if not LIBRARY.is_file():
        pytest.skip("needs the C++ library; run make build")
    folder = tmp_path_factory.mktemp("ring_ping")
    for name, text in guide_samples.sample_kernels(samples).items():
        (folder / f"{name}.cpp").write_text(text)
    (folder / "setup.cpp").write_text(guide_samples.SETUP)
    (folder / "host.cpp").write_text(guide_samples.host(samples))
    subprocess.run(
        [
            os.environ.get("CXX", "g++"), "-std=c++20", "-w", "host.cpp", f"-I{ROOT}/src",
            f"-I{ROOT}/build/generated", str(LIBRARY), "-lfmt", "-lhwy", "-lboost_context",
            "-lpthread", "-ldl", "-o", "ring_ping",
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
    # The document has a figure per hop for rings of eight; that of twelve is slightly higher.
    (hop_ns,) = map(
        int, re.findall(r"approximately (\d+)ns latency per hop", DOCUMENTS[0].read_text())
    )
    assert round_trip_ns(program, 8, 16) / 8 == pytest.approx(hop_ns, rel=0.04)
    assert round_trip_ns(program, 12, 16) / 12 == pytest.approx(hop_ns, rel=0.04)


def with_whole_packets(program: Path, folder: Path) -> Path:
    """The same program with a sender that sends a packet as one command.

    The sample sends 16 bytes per command, the default; the document's plot is of a command per
    packet.
    """
    for file in program.iterdir():
        if file.name != "sender.cpp":
            (folder / file.name).symlink_to(file)
    call = r"(eth_send_bytes_over_channel\([^;]*)\);"
    text, calls = re.subn(
        call, r"\1, page_size, page_size / 16);", (program / "sender.cpp").read_text()
    )
    assert calls == 1
    (folder / "sender.cpp").write_text(text)
    return folder


# Round trips of ubench4, in ns (validation/ethernet/guide_points.csv).
@pytest.mark.parametrize(("size_bytes", "measured_ns"), [(16, 5690), (512, 6024), (1024, 6761)])
def test_round_trips_are_those_of_the_plot(
    program: Path, tmp_path: Path, size_bytes: int, measured_ns: int
) -> None:
    found = round_trip_ns(with_whole_packets(program, tmp_path), 8, size_bytes)
    assert found == pytest.approx(measured_ns, rel=0.03)
