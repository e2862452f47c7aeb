# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 003: its kernels and host functions as printed, and the project's own kernels."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from towpath.api.gpu_kernel import kernel
from towpath.errors import TowpathError
from towpath.kernels.nvshmem_home import nvshmem_home
from towpath.reproduce import worklog_kernels
from towpath.reproduce.documents import CannotRun, document
from towpath.reproduce.worklog_times import PROGRAM, Kernels, Point
from towpath.specs import catalogue

Result = dict[str, Any]
_MACHINE = "dgx-h100"
_KIB, _MIB = 1 << 10, 1 << 20
_PROGRAMS = Path(__file__).parent / "programs"

_KERNELS = (
    "plain_exchange",
    "signal_exchange",
    "fused_exchange",
    "ring",
    "vectorised_ring",
    "simple_ring",
)


def kernels() -> Result:
    """The document's kernels, compiled as printed: data on 2, 8 and 16 PEs, live, and nvcc."""
    text = document("003")
    found: Result = {}
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        folder = Path(name)
        (folder / "document_kernels.h").write_text(worklog_kernels.header(text), encoding="utf-8")
        own = kernel(PROGRAM, flags=[f"-I{folder}"])
        for each in _KERNELS:
            shape = ["64", "32", "4", "2"]
            status = [
                own.run(_MACHINE, pes, arguments=[each, "half", *shape]).status for pes in (2, 8)
            ]
            found[each] = [not any(status), "2 and 8 PEs, half, two calls, 0 wrong"]
        rails, more = (
            own.run(
                _MACHINE,
                16,
                profile=True,
                arguments=["alternating_rings", "half", "64", each, "2", "2", "8"],
            )
            for each in ("64", "128")
        )
        types = {
            each: own.run(
                _MACHINE, 8, arguments=["vectorised_ring", each, "64", "32", "4", "2"]
            ).status
            for each in ("float", "bfloat16")
        }
        found["any_type"] = [not any(types.values()), "float and bfloat16 on 8 PEs, 0 wrong"]
        found["alternating_rings"] = [rails.status == 0, "16 PEs, eight rings, 0 wrong"]
        one = own.run(
            _MACHINE, 16, profile=True, arguments=["vectorised_ring", "half", "256", "64", "4", "1"]
        )
        found |= _network_use(one.profile, rails.profile)
        found["spine"] = _spine_use(rails.profile, more.profile)
        live = own.run_live(2, arguments=["plain_exchange", "half", "64", "32", "4", "2"])
        found["live"] = [live.status == 0, "2 processes of this host"]
    return found


def _network_use(one: Any, rails: Any) -> Result:
    """The adapters and switches that carry data of one ring, and of rings over all rails."""
    sends, receives = _adapters(one)
    rails_send, rails_receive = _adapters(rails)
    hosts = [[name.split("/")[0] for name in names] for names in (sends, receives)]
    return {
        "adapters_of_one_ring": [
            len({*sends, *receives}),
            f"{', '.join(sends)} send; {', '.join(receives)} receive",
        ],
        "one_sends_one_receives": [
            all(sorted(names) == ["host0", "host1"] for names in hosts)
            and not set(sends) & set(receives),
            f"{', '.join(sends)} send; {', '.join(receives)} receive",
        ],
        "adapters_of_all_rings": len({*rails_send, *rails_receive}),
        "both_directions": [
            rails_send == rails_receive and len(rails_send) == 16,
            f"{len(rails_send)} adapters send and {len(rails_receive)} receive",
        ],
    }


def _spine_use(once: Any, twice: Any) -> list[Any]:
    """True if twice the data adds nothing to the links of the spine: they carry barriers only."""
    spine, adapter = (
        [
            max(link.size_bytes for link in profile.verdict.links if name in link.name)
            for profile in (once, twice)
        ]
        for name in ("spine", "/nic")
    )
    return [
        spine[0] == spine[1] and adapter[1] > adapter[0],
        f"{spine[0]} and {spine[1]} B over the busiest link to the spine, {adapter[0]} and "
        f"{adapter[1]} B over an adapter",
    ]


def _adapters(profile: Any) -> tuple[list[str], list[str]]:
    """Adapters that send and that receive over the network more than barriers do.

    Barriers are less than a tenth of the bytes of the busiest of these links.
    """
    links = [link for link in profile.verdict.links if link.kind == "network"]
    busiest = max(link.size_bytes for link in links)
    ends = [link.name.split(" > ") for link in links if link.size_bytes > busiest / 10]
    return (
        sorted({begin for begin, _ in ends if "/nic" in begin}),
        sorted({end for _, end in ends if "/nic" in end}),
    )


def nvcc() -> Result:
    """The document's kernels, compiled by nvcc for a GPU."""
    program, home = shutil.which("nvcc"), nvshmem_home()
    if program is None or home is None:
        raise CannotRun("nvcc", "nvcc and NVSHMEM's headers (nvidia-nvshmem-cu13) are not here")
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        folder = Path(name)
        header = worklog_kernels.header(document("003"))
        (folder / "document_kernels.h").write_text(header, encoding="utf-8")
        flags = [
            "-std=c++17",
            "-arch=sm_90",
            "-rdc=true",
            "-dc",
            f"-I{home / 'include'}",
            f"-I{folder}",
        ]
        made = subprocess.run(
            [program, *flags, str(PROGRAM), "-o", str(folder / "kernels.o")],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    text = made.stderr.strip() or "nvcc compiles all for sm_90"
    return {"compiles": [made.returncode == 0, text]}


def ring_times() -> Result:
    """Times of the document's ring kernels with data, in the best of some shapes."""
    text = document("003")
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        own = Kernels(text, Path(name))

        def best(kind: str, size: int) -> float:
            return own.best_us(
                [
                    Point(kind, size, threads, each, 8)
                    for threads, each in ((256, 16), (256, 64), (512, 16))
                ]
            )

        first, vectorized = best("ring", _MIB), best("vectorised_ring", _MIB)
    return {
        "vectorized_gain": [
            first / vectorized,
            f"1 MiB on 8 PEs: {first:.0f} and " f"{vectorized:.0f} us",
        ],
    }


def calls_in_a_row() -> Result:
    """Rings called back to back: the time of a call when the calls before it still run."""
    own = kernel(_PROGRAMS / "worklog_rows.cu")

    def time_us(name: str, calls: int) -> float:
        arguments = [name, str(16 * _KIB), str(calls)]
        ran = own.run(_MACHINE, 8, settings=["gpu_cost.launch_ns=0"], arguments=arguments)
        if ran.status != 0 or ran.time_us is None:
            raise RuntimeError(f"{calls} calls of {name} have wrong data")
        return ran.time_us

    barrier = time_us("none", 0)
    alone = {name: time_us(name, 1) - barrier for name in ("ring", "simple")}
    each = {name: (time_us(name, 7) - time_us(name, 2)) / 5 for name in alone}
    text = ", ".join(f"{name} {alone[name]:.1f} and {each[name]:.1f} us" for name in alone)
    return {
        "one_over_each": [
            alone["simple"] / each["simple"],
            f"one call, and each of a row, 16 KiB on 8 GPUs: {text}",
        ],
        "ring_over_simple": [
            each["ring"] / each["simple"],
            f"each call of a row, 16 KiB on 8 GPUs: ring {each['ring']:.1f} us, simple ring "
            f"{each['simple']:.1f} us",
        ],
    }


def own_kernels() -> Result:
    """The project's kernels: one-shot all-reduce, and rings of three nodes."""
    from towpath.studies import penny

    spec = catalogue.load(_MACHINE)
    size = 128 * _KIB
    points = [penny.Point(name, size, 256, 16, 1, 8) for name in ("one_shot", "vectorised_ring")]
    one_shot, ring = (row.time_us for row in penny.measure(spec, points).rows)
    rails = penny.Point("vectorised_ring", 24 * 8 * 4 * _KIB, 64, 16, 8, 24)
    three = penny.measure(spec, [rails]).rows[0].time_us
    return {
        "one_shot": [ring / one_shot, f"{one_shot:.1f} and {ring:.1f} us at 128 KiB"],
        "seats": [three > 0, f"eight rings over three nodes in {three:.0f} us, sums checked"],
    }


def host_code() -> Result:
    """The document's host functions, compiled with tensors of the same members."""
    blocks = worklog_kernels.blocks_of(document("003"))
    plain, signal = (block for block in blocks if "void exchange(torch::Tensor" in block)
    host = "".join(block for block in blocks if "pybind11::bytearray" in block)
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        text = (
            f"namespace first {{\n{plain}}}\nnamespace second {{\n{signal}}}\n"
            f"namespace host {{\n{host}}}\n"
        )
        Path(name, "document_host.h").write_text(text, encoding="utf-8")
        own = kernel(_PROGRAMS / "worklog_host.cu", flags=[f"-I{name}"])
        first = own.run(_MACHINE, 2, arguments=["first"]).status
        identifier = own.run(_MACHINE, 1, arguments=["identifier"]).status
        try:
            own.run(_MACHINE, 2, arguments=["second"])
            second = ""
        except TowpathError as error:
            second = str(error)
    return {
        "exchange": [first == 0, "the first exchange swaps the buffers of two PEs, 0 wrong"],
        "identifier": [identifier == 0, "get_nvshmem_unique_id and init_with_uid"],
        "early_unregister": ["nvshmemx_buffer_unregister" in second, second],
    }
