# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What users are told about their mistakes: each sentence as a whole, in tests/sentences.txt alone.

Other tests compare kind, fields and a key phrase. After a sentence was changed on purpose,
`.venv/bin/python tests/unit/python/test_sentences.py` writes the file again; look at its diff.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

import towpath
from inside.cli import main as cli
from inside.errors import Interruption

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "sentences.txt"
Mistake = tuple[str, ...] | Callable[[], object]  # words of a command, or a call

PAIR = """\
form: graph
name: pair
description: two GPUs on a wire
hosts: 1
devices:
  - {name: a, kind: gpu, host: 0}
  - {name: b, kind: gpu, host: 0}
wires:
  - {between: [a, b], link_type: wire}
"""
EXCHANGE = """\
<algo name="exchange" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allgather" \
inplace="1" outofplace="1">
  <gpu id="0" i_chunks="1" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" \
deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"""

FILES = {
    "empty.yaml": "",
    "list.yaml": "- 1\n",
    "tab.yaml": "form:\tx: [\n",
    "graph.yaml": PAIR,
    "twice.yaml": "form: template\nform: graph\n",
    "strange.yaml": "form: strange\nname: x\n",
    "bad-name.yaml": PAIR.replace("name: pair", "name: 7"),
    "chip.yaml": "form: chip\nname: small\n",
    "host.yaml": "form: host\nname: small\n",
    "mailboxes.yaml": "form: mailbox_cluster\nname: small\n",
    "chips.yaml": "form: chip_cluster\nname: c\ndescription: d\nsource: s\nchips:\n"
    "  - {chip: nowhere, x: 0, y: 0}\nlinks: []\n",
    "topo.txt": "        GPU0    GPU1\nGPU0     X      NV18\n",
    "system.xml": "<system version='1'><cpu/></system>",
    "cut.xml": "<algo name=",
    "other.xml": "<html/>",
    "half.xml": EXCHANGE,
    "no-coll.xml": EXCHANGE.replace("allgather", "allfoo"),
    "step.xml": EXCHANGE.replace('type="s"', 'type="x"'),
    "peer.xml": EXCHANGE.replace('send="1"', 'send="7"'),
    "trace.json": "{}",
    "event.json": "[\n{}\n]",
    "unknown.csv": "a,b\n1,2\n",
    "ragged.csv": "a,b\n1\n",
    "tolerance.csv": "# tolerance: little\nnodes,gpus,config,size_bytes,time_us_out_of_place\n",
    "folder/x": "",
}


def _host_call(method: str, *arguments: object, **options: object) -> Callable[[], object]:
    def call() -> object:
        from towpath import HostCluster

        return getattr(HostCluster("ryzen-host", ["wormhole"]), method)(*arguments, **options)

    return call


def _run(*words: str) -> tuple[str, ...]:
    return ("run", "all_reduce", "--sizes", "1K", *words)


RING = ("--machine", "ring")

MISTAKES: dict[str, Mistake] = {
    # Where to run.
    "run/nowhere": _run(),
    "run/no-such-machine": _run("--machine", "dgx-h10"),
    "run/no-such-file": _run("--machine", "folder/none.yaml"),
    "run/a-folder": _run("--machine", "folder"),
    "run/a-chip": _run("--machine", "wormhole"),
    "run/a-host": _run("--machine", "ryzen-host"),
    "run/machine-options-without-machine": _run("--live", "2", "--hosts", "2"),
    "run/live-trace": _run("--live", "2", "--trace", "t.json"),
    # What to run.
    "run/no-such-collective": ("run", "all_redude", *RING),
    "run/no-such-algorithm": _run(*RING, "--algorithm", "rings"),
    "run/algorithm-of-another-collective": _run(*RING, "--algorithm", "ring_all_gather"),
    "run/no-such-protocol": _run(*RING, "--protocol", "LL12"),
    "run/no-such-dtype": _run(*RING, "--dtype", "float8"),
    "run/no-such-op": _run(*RING, "--op", "plus"),
    "run/no-such-root": ("run", "broadcast", *RING, "--sizes", "1K", "--root", "9"),
    "run/root-of-none": _run(*RING, "--root", "1"),
    "run/op-of-none": ("run", "all_gather", "--sizes", "1K", *RING, "--op", "max"),
    "run/no-channels": _run(*RING, "--channels", "0"),
    "run/no-live-channels": ("run", "all_reduce", "--live", "2", "--channels", "0"),
    "run/too-many-channels": _run(*RING, "--channels", "65"),
    "run/schedule-and-algorithm": ("run", *RING, "--schedule", "half.xml", "--algorithm", "ring"),
    "run/no-such-schedule": ("run", *RING, "--schedule", "none.xml"),
    # Sizes.
    "sizes/words": ("run", "all_reduce", *RING, "--sizes", "big"),
    "sizes/empty": ("run", "all_reduce", *RING, "--sizes", ""),
    "sizes/backwards": ("run", "all_reduce", *RING, "--sizes", "1M:1K"),
    "sizes/factor": ("run", "all_reduce", *RING, "--sizes", "1K:1M:1"),
    "sizes/too-large": ("run", "all_reduce", *RING, "--sizes", "99999T"),
    # How many.
    "ranks/part-of-a-host": _run("--machine", "dgx-h100", "--ranks", "4"),
    "ranks/none": _run("--machine", "dgx-h100", "--ranks", "0"),
    "ranks/per-host": _run("--machine", "dgx-h100", "--ranks-per-host", "9"),
    "ranks/hosts-and-ranks": _run("--machine", "dgx-h100", "--ranks", "8", "--hosts", "2"),
    "ranks/hosts-of-chips": _run("--machine", "t3000", "--hosts", "2"),
    # Faults of links.
    "faults/on-gpus": _run(*RING, "--link-fault", "0:8,dead=1us"),
    "faults/no-such-link": _run("--machine", "n300", "--link-fault", "0:3,loss=0.1"),
    "faults/no-fault": _run("--machine", "n300", "--link-fault", "0:9"),
    "faults/no-such-word": _run("--machine", "n300", "--link-fault", "0:9,slow=1us"),
    "faults/loss": _run("--machine", "n300", "--link-fault", "0:9,loss=2"),
    # Files that describe machines.
    "spec/empty": ("show", "empty.yaml"),
    "spec/list": ("show", "list.yaml"),
    "spec/not-yaml": ("show", "tab.yaml"),
    "spec/twice": ("show", "twice.yaml"),
    "spec/form": ("show", "strange.yaml"),
    "spec/lacks": ("show", "graph.yaml"),
    "spec/type": ("show", "bad-name.yaml"),
    "spec/chip": ("show", "chip.yaml"),
    "spec/host": ("show", "host.yaml"),
    "spec/mailboxes": ("show", "mailboxes.yaml"),
    "spec/cluster-of-unknown-chips": ("show", "chips.yaml"),
    "spec/nvidia-smi": ("show", "topo.txt"),
    "spec/nccl-xml": ("show", "system.xml"),
    "show/no-such-machine": ("show", "nosuch"),
    "show/options-of-gpus": ("show", "t3000", "--hosts", "2"),
    "show/harvest-mask": ("show", "t3000", "--harvest-mask", "1"),
    "show/harvest-mask-too-large": ("show", "wormhole", "--harvest-mask", "4096"),
    "show/nothing-to-draw": ("show", "ryzen-host", "--svg", "host.svg"),
    "show/no-folder": ("show", "ring", "--svg", "none/ring.svg"),
    # Schedules.
    "schedule/cut-off": ("verify", "cut.xml"),
    "schedule/not-msccl": ("verify", "other.xml"),
    "schedule/missing": ("verify", "none.xml"),
    "schedule/ranks": ("verify", "half.xml"),
    "schedule/collective": ("verify", "no-coll.xml"),
    "schedule/step-type": ("verify", "step.xml"),
    "schedule/peer": ("verify", "peer.xml"),
    "schedule/size": ("verify", "half.xml", "--size", "0"),
    "export/powers-of-two": (
        "export",
        "all_reduce",
        "x.xml",
        "--ranks",
        "6",
        "--algorithm",
        "recursive_doubling_all_reduce",
    ),
    # Studies.
    "replay/not-a-list": ("replay", "trace.json"),
    "replay/event": ("replay", "event.json"),
    "replay/machine": ("replay", "trace.json", "--machine", "ring"),
    "bench/pattern": ("bench", "noc-vc", "--machine", "wormhole", "--patterns", "some_to_some"),
    "bench/size": ("bench", "noc-vc", "--machine", "wormhole", "--sizes", "33"),
    "bench/grid": ("bench", "noc-vc", "--machine", "wormhole", "--grid", "99x1"),
    "bench/vcs": ("bench", "noc-vc", "--machine", "wormhole", "--vcs", "0"),
    "bench/pcie-size": ("bench", "pcie", "--sizes", "3"),
    "bench/pcie-chip": ("bench", "pcie", "--machine", "n300"),
    "bench/ethernet-without-links": ("bench", "ethernet", "--machine", "p150"),
    "bench/mailbox-nowhere": ("bench", "mailbox"),
    "routes/no-link": ("routes", "t3000", "0-7"),
    "routes/not-a-route": ("routes", "t3000", "0"),
    # Tuning.
    "tune/nowhere": ("tune", "all_reduce"),
    "tune/channels": ("tune", "all_reduce", *RING, "--channels", "0"),
    "tune/protocols": ("tune", "all_reduce", *RING, "--protocol", "LL,L"),
    "tune/csv-of-chips": ("tune", "all_reduce", "--machine", "t3000", "--csv", "x.csv"),
    "tune/csv-of-a-collective": ("tune", "all_to_all", *RING, "--csv", "x.csv"),
    "tune/ethernet-without-links": ("tune", "ethernet", "--machine", "p150"),
    "tune/two-places": ("tune", "all_reduce", *RING, "--live", "2"),
    "tune/ranks-of-chips": ("tune", "all_reduce", "--machine", "t3000", "--ranks", "4"),
    # Validation.
    "validate/no-such-table": ("validate", "fabric/neighbors"),
    "validate/no-such-file": ("validate", "none.csv"),
    "validate/unknown-columns": ("validate", "unknown.csv"),
    "validate/ragged": ("validate", "ragged.csv"),
    "validate/tolerance": ("validate", "tolerance.csv"),
    "validate/half": ("validate", "fabric/neighbours", "--half", "better"),
    "validate/group": ("validate", "fabric/neighbours", "--group", "("),
    "validate/no-rows": ("validate", "fabric/neighbours", "--group", "none"),
    "validate/machine": ("validate", "fabric/neighbours", "--machine", "ring"),
    "validate/options-without-a-table": ("validate", "--half", "fit"),
    # Hosts.
    "host/option": _host_call("write_to_device", b"12", 0, (1, 2), 0, order="posted"),
    "host/word": _host_call("write_to_device", b"12", 0, (1, 2), 0, ordering="loose"),
    "host/chip": _host_call("write_to_device", b"12", 3, (1, 2), 0),
    "host/core": _host_call("write_to_device", b"12", 0, (99, 2), 0),
    "host/address": _host_call("memory", 0, (1, 2), 1 << 40, 8),
    "host/window": _host_call("configure_tlb", 0, (1, 2), 3 << 20, 0),
    "host/kind": _host_call("core", 0, "tensix"),
}


def provoke(mistake: Mistake) -> str:
    """The sentence that a mistake earns; paths of the checkout are relative to it.

    Lists of algorithms become a word, so that a new algorithm changes no sentence.

    Raises:
        AssertionError: it was not refused.
    """
    sentence = _refusal(mistake).replace(f"{ROOT}{os.sep}", "")
    names: dict[str, list[str]] = {}
    for algorithm in towpath.algorithms():
        names.setdefault(algorithm.collective, []).append(algorithm.name)
    for collective, those in names.items():
        sentence = sentence.replace(", ".join(those), f"<algorithms for {collective}>")
    return sentence


def _refusal(mistake: Mistake) -> str:
    try:
        if isinstance(mistake, tuple):
            interruption = Interruption()
            result = CliRunner().invoke(cli.app, mistake, standalone_mode=False, obj=interruption)
            if result.exception is not None:
                raise result.exception
        else:
            mistake()
    except (ValueError, RuntimeError, OSError) as refusal:
        return str(refusal)
    except Exception as refusal:  # of the library below typer, which has a version of click inside
        return refusal.format_message()  # type: ignore[attr-defined]
    raise AssertionError(f"{mistake} was not refused")


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def golden() -> dict[str, str]:
    """The sentences of the file, by name."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    write_files(folder)
    with working_in(folder):
        yield folder


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_known_sentence(name, here):
    sentence = provoke(MISTAKES[name])
    assert "\n" not in sentence
    assert sentence == golden().get(name, "not in tests/sentences.txt")


def test_the_file_holds_no_sentence_without_its_mistake():
    assert list(golden()) == sorted(MISTAKES)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary, working_in(Path(temporary)):
        write_files(Path(temporary))
        found = {name: provoke(MISTAKES[name]) for name in sorted(MISTAKES)}
        GOLDEN.write_text("".join(f"{name}: {text}\n" for name, text in found.items()), "utf-8")
    print(f"{len(found)} sentences: {os.path.relpath(GOLDEN)}")
