# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench deepep`: dispatch and combine of experts on a described cluster of GPUs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from towpath.cli.options import AsJson, machine_option
from towpath.cli.output_file import json_text
from towpath.errors import ConfigError, quoted


def deepep(
    machine: Annotated[str, machine_option("a cluster of GPUs: a name or a file")] = "dgx-h100",
    hosts: Annotated[int, typer.Option("--hosts", min=1, help="number of hosts")] = 1,
    mode: Annotated[str, typer.Option(help="low_latency or normal")] = "low_latency",
    tokens: Annotated[str, typer.Option(help="tokens of each GPU: 1,8,128")] = "1,8,32,128",
    hidden: Annotated[int, typer.Option(min=128, help="elements of a token")] = 7168,
    topk: Annotated[int, typer.Option(min=1, help="experts of a token")] = 8,
    experts: Annotated[int, typer.Option(min=1, help="number of experts")] = 256,
    sms: Annotated[int, typer.Option(min=2, help="multiprocessors in normal mode")] = 20,
    as_json: AsJson = False,
) -> None:
    """Predict DeepEP's dispatch and combine: experts on many GPUs."""
    from towpath.names import chosen
    from towpath.specs import catalogue
    from towpath.specs.machine_spec import MachineSpec
    from towpath.studies.deepep import MODES, OPERATIONS, Moe, times_of

    mode = chosen("--mode", mode, MODES, {})
    spec = catalogue.load(machine, hosts=hosts)
    if not isinstance(spec, MachineSpec):
        raise ConfigError("deepep is for clusters of GPUs", file=machine)
    rows: list[dict[str, Any]] = []
    for count in _counts(tokens):
        moe = Moe(count, hidden, topk, experts)
        found = {each: times_of(spec, mode, each, moe, sms) for each in OPERATIONS}
        rows.append({"tokens": count} | {name: asdict(each) for name, each in found.items()})
    if as_json:
        print(json_text({"machine": spec.name, "hosts": hosts, "mode": mode, "rows": rows}))
        return
    print(f"# {mode} on {spec.name}, {hosts * spec.gpus_per_host} GPUs on {hosts} hosts")
    print("# tokens  dispatch (us)  limited by       combine (us)  limited by")
    for row in rows:
        there, back = row["dispatch"], row["combine"]
        print(
            f"{row['tokens']:8}  {there['time_us']:13.1f}  {there['limit']:<15}  "
            f"{back['time_us']:12.1f}  {back['limit']}"
        )


def _counts(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= 1 << 24 for part in parts):
        raise ConfigError(
            f"--tokens is {quoted(text)}; it must be numbers from 1 to {1 << 24}, such as 1,8,128"
        )
    return [int(part) for part in parts]
