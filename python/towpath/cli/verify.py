# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath verify`: the correctness of a schedule at a size, and the smallest size at which it
hangs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.groups import COLLECTIVES
from towpath.cli.options import (
    Algorithm,
    AsJson,
    Chunks,
    Columns,
    Machine,
    Protocol,
    Result,
    Root,
    ScheduleChannels,
    ScheduleHosts,
    ScheduleRanks,
    given,
)
from towpath.cli.output_file import print_json
from towpath.errors import ConfigError
from towpath.names import unknown

if TYPE_CHECKING:
    from towpath import Schedule, Verdict

_STANDARD_INPUT = "/dev/stdin"


def verify(
    schedule: Annotated[
        str,
        typer.Argument(
            metavar="FILE|COLLECTIVE",
            help="an MSCCL XML file, - for standard input, or a collective with --ranks",
        ),
    ],
    sizes: Annotated[
        str, typer.Option("--sizes", "--size", help="sizes to verify for: 64M or 8:1G:8")
    ] = "64M",
    dtype: Annotated[str, typer.Option("--dtype", "-d", help="element type")] = "float32",
    ranks: ScheduleRanks = None,
    algorithm: Algorithm = None,
    channels: ScheduleChannels = None,
    protocol: Protocol = None,
    root: Root = None,
    hosts: ScheduleHosts = None,
    chunks: Chunks = None,
    columns: Columns = None,
    machine: Machine = None,
    executor: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="count FIFO slots as towpath, nccl or msccl do"),
    ] = None,
    result: Result = None,
    as_json: AsJson = False,
) -> None:
    """Check a schedule, and find the size at which it hangs."""
    import towpath
    from towpath.pages.provenance import provenance
    from towpath.specs.sizes import parse_sizes

    options = given(
        ranks=ranks, algorithm=algorithm, channels=channels, protocol=protocol, root=root,
        hosts=hosts, chunks_per_channel=chunks, columns=columns,
    )  # fmt: skip
    where = _where(machine, executor, options, is_own=_is_collective(schedule))
    subject = _schedule(schedule, options, result)
    verdicts = [
        towpath.verify(subject, size_bytes=size_bytes, dtype=dtype, **where)
        for size_bytes in parse_sizes(sizes)
    ]
    is_correct = all(verdict.is_correct for verdict in verdicts)
    if as_json:
        found = {
            "is_correct": is_correct,
            "hangs_from_bytes": verdicts[0].hangs_from_bytes,
            "verdicts": [verdict.to_dict() for verdict in verdicts],
        }
        print_json(found, provenance(schedules=[subject]))
    else:
        print(verdict_text(verdicts))
    if not is_correct:
        raise typer.Exit(1)


def _is_collective(text: str) -> bool:
    """True if the argument is the name of a collective and not a file."""
    return text != "-" and not Path(text).exists() and Path(text).suffix == ""


def _where(
    machine: str | None, executor: str | None, options: dict[str, Any], *, is_own: bool
) -> dict[str, Any]:
    """The options of `towpath.verify` that determine the number of slots.

    With a file, --hosts applies to the machine or the executor. With a collective, it also applies
    to the collective.
    """
    hosts = options.get("hosts") if is_own else options.pop("hosts", None)
    if machine is not None:
        from towpath.cli.machine import cluster

        loaded = cluster(machine, **given(hosts=hosts))
        return {"machine": loaded, **given(executor=executor)}
    if executor is not None:
        return {"executor": executor, **given(hosts=hosts)}
    if hosts is not None and not is_own:
        raise ConfigError("--hosts with a file requires --machine or --executor")
    return {}


def generated(collective: str, options: dict[str, Any]) -> Schedule:
    """One of towpath's own schedules.

    Args:
        collective: name of the collective in any spelling.
        options: the given options of `Schedule.generate`.

    Raises:
        ConfigError: an option is wrong, or `ranks` is missing.
    """
    import towpath

    if "ranks" not in options:
        raise ConfigError(f"{collective} needs --ranks, the number of ranks of the schedule")
    return towpath.Schedule.generate(collective, **options)


def _schedule(text: str, options: dict[str, Any], result: str | None) -> Schedule:
    """The schedule that the argument names: a file, standard input or a collective."""
    import towpath
    from towpath.names import nearest

    if _is_collective(text):
        if nearest(text, COLLECTIVES) is None:
            raise unknown("there is no file or collective", text, COLLECTIVES)
        if result is not None:
            raise ConfigError("--result applies to a file with coll='custom'")
        return generated(text, options)
    if options:
        name = next(iter(options)).replace("_per_channel", "").replace("_", "-")
        raise ConfigError(
            f"--{name} applies to a collective, such as `towpath verify all_reduce --ranks 8`; "
            "a file contains its own schedule"
        )
    return towpath.Schedule.load(_STANDARD_INPUT if text == "-" else text, result=result)


def verdict_text(verdicts: list[Verdict]) -> str:
    """A line for each size, followed by its problems, and the smallest size that hangs."""
    lines = []
    for verdict in verdicts:
        lines.append(
            f"{verdict.schedule}: {verdict.collective} of {verdict.ranks} ranks, "
            f"{verdict.protocol}, {verdict.steps} steps, {verdict.size_bytes} bytes"
        )
        lines += [f"  {problem.kind}: {problem.sentence}" for problem in verdict.problems]
        if verdict.hangs_with_any_slots is not None:
            always = verdict.hangs_with_any_slots
            words = "whatever the slots" if always else "assuming these slots"
            lines.append(f"  it hangs {words}: {verdict.assumption}")
        if verdict.omitted:
            lines.append(f"  and {verdict.omitted} more")
        lines += [f"  not checked: {sentence}" for sentence in verdict.not_checked]
        if verdict.is_correct:
            lines.append("  correct: right data, no race, no deadlock, in bounds")
        lines += [f"  note: {sentence}" for sentence in verdict.remarks]
    hangs_from_bytes = verdicts[0].hangs_from_bytes
    if hangs_from_bytes is None:
        lines.append("  does not hang for lack of FIFO slots at any size")
    else:
        lines.append(f"  hangs for lack of FIFO slots from {hangs_from_bytes} bytes on")
    lines.append(f"  assumed: {verdicts[0].assumption}")
    return "\n".join(lines)
