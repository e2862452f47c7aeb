# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath run` and `towpath expect`: a collective on a described machine, or between processes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from towpath.cli.library_options import LIBRARY, OfLibrary, library_from
from towpath.cli.machine import cluster, gpu_cluster
from towpath.cli.options import (
    MACHINE,
    AsJson,
    Live,
    Machine,
    OutPage,
    Result,
    advanced,
    errors_name_options,
    given,
    machine_option,
    refuse,
    request_options,
    takes,
)
from towpath.cli.output_file import (
    check_folder,
    check_output,
    command_line,
    json_text,
    note,
    page_output,
)
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath import RunResult, Schedule
    from towpath.collectives.result import RunRow

DEFAULT_SIZES = "8:64M"
_Machine = TypeVar("_Machine")

_COLLECTIVES = (
    "all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter, "
    "all_to_all_v, send_recv, barrier"
)


def _as_in_nccl(*flags: str, **settings: Any) -> Any:
    return advanced(*flags, help="as in nccl-tests", **{"metavar": "SIZE", **settings})


SIZES: dict[str, Any] = {
    "sizes": Annotated[
        str | None,
        typer.Option("--sizes", "--size", help=f"8:1G, 8:1G:4 or 8,64; default: {DEFAULT_SIZES}"),
    ],
    "minbytes": Annotated[str | None, _as_in_nccl("-b", "--minbytes")],
    "maxbytes": Annotated[str | None, _as_in_nccl("-e", "--maxbytes")],
    "stepfactor": Annotated[int | None, _as_in_nccl("-f", "--stepfactor", metavar="N")],
    "ngpus": Annotated[int | None, _as_in_nccl("-g", "--ngpus", metavar="N", min=1)],
}
OUTPUT: dict[str, Any] = {
    "out": OutPage,
    "trace": Annotated[
        Path | None,
        advanced(
            "--trace", metavar="FILE", help="write a Perfetto trace of --trace-size",
        ),
    ],
    "trace_size": Annotated[
        str | None,
        advanced(
            "--trace-size", metavar="SIZE",
            help="the size of timeline and trace; default: the largest of --sizes up to 1M",
        ),
    ],
    "flight_recorder": Annotated[
        Path | None,
        advanced(
            "--flight-recorder", metavar="FOLDER",
            help="write the calls as PyTorch's flight recorder does, a pickle per rank",
        ),
    ],
    "inspector": Annotated[
        Path | None,
        advanced(
            "--inspector", metavar="FILE", help="write the calls as NCCL Inspector does, as JSON "
            "lines",
        ),
    ],
    "schedule_out": Annotated[
        Path | None,
        advanced(
            "--schedule-out", metavar="FILE",
            help="write the schedule of the largest size as MSCCL XML",
        ),
    ],
    "explain": Annotated[
        bool | None,
        advanced(
            "--explain",
            help="how many ranks were simulated at each size, and why not fewer",
        ),
    ],
}  # fmt: skip


@takes(sizes=SIZES, options=request_options(), size=MACHINE, output=OUTPUT)
def run(
    sizes: dict[str, Any],
    options: dict[str, Any],
    size: dict[str, Any],
    output: dict[str, Any],
    collective: Annotated[
        str | None, typer.Argument(metavar="COLLECTIVE", help=_COLLECTIVES)
    ] = None,
    machine: Machine = None,
    live: Live = None,
    schedule: Annotated[
        Path | None, typer.Option("--schedule", metavar="FILE", help="an MSCCL XML file instead")
    ] = None,
    result: Result = None,
    as_json: AsJson = False,
) -> None:
    """Run a collective: simulated (--machine), for real (--live), or both."""
    gpus = sizes.pop("ngpus", None)
    if schedule is not None:
        own = ("root", "algorithm", "protocol", "channels")
        refuse(
            {name: options[name] for name in own if name in options},
            "applies to Towpath's own schedules; a --schedule file contains its own",
        )
    subject = _subject(collective, schedule, result)
    if machine is None:
        live = _checked_live(gpus if live is None else live, size, output)
    elif live is not None and schedule is None:
        # One schedule, so that the two can be compared.
        options = {"algorithm": None, "protocol": "Simple", **options}
    machines = [] if machine is None else _machines(machine, size, gpus, cluster)
    simulated, measured = _by_kind(options, machine, live)
    request = {"size_bytes": _sizes(**sizes)}
    if options.get("algorithm") == "synthesis":
        output.setdefault("explain", True)
    deliver = Delivery(as_json, output)
    with errors_name_options():
        for setting, each in machines:
            if setting and not as_json:
                print(f"# with {setting}")
            deliver.run(each.run, subject, request | simulated)
        if live is not None:
            from towpath import run_live

            deliver.run(run_live, subject, {"ranks": live} | request | measured)
    deliver.finish()


@takes(
    sizes=SIZES, options=request_options("dtype", "root", "data", "fold", "threads", "launch"),
    size=MACHINE,
    library=LIBRARY, output=OUTPUT,
)  # fmt: skip
def expect(
    sizes: dict[str, Any],
    options: dict[str, Any],
    size: dict[str, Any],
    library: dict[str, Any],
    output: dict[str, Any],
    collective: Annotated[str, typer.Argument(metavar="COLLECTIVE", help=_COLLECTIVES)],
    machine: Annotated[str, machine_option("the cluster of GPUs: a name or a file")],
    run_as: OfLibrary = None,
    as_json: AsJson = False,
) -> None:
    """Print the table that nccl-tests should print, with the model's error."""
    gpus = sizes.pop("ngpus", None)
    sizes = sizes or {"sizes": "8:64M:8"}
    deliver = Delivery(as_json, output)
    for setting, each in _machines(machine, size, gpus, gpu_cluster):
        if setting and not as_json:
            print(f"# with {setting}")
        chosen = library_from(run_as or each.own_library, library)
        with errors_name_options():
            asked = {"size_bytes": _sizes(**sizes), "library": chosen, "data": False, **options}
            deliver.run(each.run, collective, asked)
    deliver.finish()


class Delivery:
    """Prints results as they are computed, and writes their page, JSON and trace at the end."""

    def __init__(self, as_json: bool, output: dict[str, Any]) -> None:
        """Checks the output files before anything runs.

        Args:
            as_json: True to print JSON instead of tables.
            output: the given options of OUTPUT.

        Raises:
            ConfigError: a file cannot be written, or an option has no effect.
        """
        self._as_json = as_json
        self._explains = output.get("explain", False)
        self._trace, self._schedule = output.get("trace"), output.get("schedule_out")
        check_output(self._trace)
        check_output(self._schedule)
        self._dumps, self._inspector = output.get("flight_recorder"), output.get("inspector")
        check_folder(self._dumps)
        check_output(self._inspector)
        self._page = page_output(output.get("out"))
        self._trace_bytes = _trace_size(
            output.get("trace_size"), is_traced=bool(self._trace or self._page)
        )
        self._results: list[RunResult] = []

    def run(
        self, function: Callable[..., RunResult], subject: Any, options: dict[str, Any]
    ) -> None:
        """Runs a request and prints its rows as they are computed."""
        count = len(options["size_bytes"])
        known: list[str] = []  # notes that are printed before the first row
        with _shown(not self._as_json, count, self._explains, known) as on_row:
            result = function(subject, on_row=on_row, **options)
        result = replace(result, command=command_line())
        self._results.append(result)
        if not self._as_json:
            from towpath.api import table

            late = [f"# {each}" for each in result.notes if each not in known]
            print("\n".join([*late, *table.footer(result, explains=self._explains)]))

    def finish(self) -> None:
        """Writes the requested files. The status is 1 if data is wrong."""
        from towpath.pages.provenance import joined

        results = self._results
        text = ""
        if self._as_json or self._page is not None:
            found = [each.to_dict(links=self._page is not None) for each in results]
            text = json_text(found, joined(each.provenance for each in results))
        if self._as_json:
            print(text)
        if self._page is not None:
            from towpath.api.report import write_report

            self._page.write(
                lambda path: write_report(results, path, trace_size_bytes=self._trace_bytes), text
            )
        if self._trace is not None:
            results[0].trace(self._trace, size_bytes=self._trace_bytes)
            note(f"trace: {self._trace} (open it at ui.perfetto.dev)")
        if self._schedule is not None:
            results[0].schedule().save(self._schedule)
            note(f"schedule: {self._schedule}")
        # If a run is simulated and live, the live one is last.
        self._record(results[-1])
        if any(result.wrong for result in results):
            raise typer.Exit(1)

    def _record(self, result: RunResult) -> None:
        """Writes the calls of a run in the forms of recorders."""
        if self._dumps is not None:
            result.flight_recorder(self._dumps)
            note(f"flight recorder: {self._dumps} (give its files to `towpath doctor`)")
        if self._inspector is not None:
            result.inspector(self._inspector)
            note(f"inspector: {self._inspector}")


@contextmanager
def _shown(
    prints: bool, count: int, explains: bool, known: list[str]
) -> Iterator[Callable[[RunResult, RunRow | None], None]]:
    """Prints a table row by row, with a progress bar while the next row is computed.

    Args:
        prints: True if the table is printed.
        count: number of rows.
        explains: True to add the choice of the schedule and the reason for simulating all ranks.
        known: called with the notes above the first row.
    """
    from towpath.api import table
    from towpath.cli.progress import bar

    shown = 0
    is_narrow = _is_narrow()
    with bar("running", count) as update:

        def show(result: RunResult, row: RunRow | None) -> None:
            nonlocal shown
            if row is None:
                known.extend(result.notes)
                lines = table.header(result, is_narrow=is_narrow)
            else:
                shown += 1
                lines = table.row_lines(result, row, explains=explains, is_narrow=is_narrow)
            text = "\n".join(lines)
            if prints and text:
                print(text, flush=True)
            update(shown, f"{result.kind} {result.collective}")

        yield show


def _is_narrow() -> bool:
    """True if the full table does not fit the terminal. A pipe always gets the full table."""
    from towpath.api.table import FULL_COLUMNS

    return sys.stdout.isatty() and shutil.get_terminal_size().columns < FULL_COLUMNS


# --- what was typed -------------------------------------------------------------------------------


def _subject(collective: str | None, schedule: Path | None, result: str | None) -> str | Schedule:
    import towpath

    if collective is not None and schedule is None:
        refuse(given(result=result), "requires --schedule")
        return collective
    if schedule is not None and collective is None:
        return towpath.Schedule.load(schedule, result=result)
    raise ConfigError("give either a collective or a --schedule file")


def _sizes(
    sizes: str | None = None, minbytes: str | None = None, maxbytes: str | None = None,
    stepfactor: int | None = None,
) -> list[int]:  # fmt: skip
    """Sizes from --sizes, or from -b, -e and -f."""
    from towpath.specs.sizes import parse_sizes

    if minbytes is None and maxbytes is None and stepfactor is None:
        return parse_sizes(DEFAULT_SIZES if sizes is None else sizes)
    if sizes is not None:
        raise ConfigError("--sizes and -b, -e, -f exclude each other")
    first, last = DEFAULT_SIZES.split(":")
    return parse_sizes(f"{minbytes or first}:{maxbytes or minbytes or last}:{stepfactor or 2}")


def _checked_live(live: int | None, size: dict[str, Any], output: dict[str, Any]) -> int:
    """Rejects options of a simulation if none is requested, and a run without a place."""
    if live is None:
        raise ConfigError("give --machine NAME to simulate, --live RANKS to run, or both")
    refuse(size | given(trace=output.get("trace")), "requires --machine")
    return live


def _by_kind(
    options: dict[str, Any], machine: str | None, live: int | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the simulation and the options of the live run.

    Raises:
        ConfigError: an option would have no effect.
    """
    from towpath.api.request import LIVE, SIMULATED, option_fields

    only = {each.name: each.metadata["only"] for each in option_fields()}
    typed = {
        kind: {name: value for name, value in options.items() if only[name] == kind}
        for kind in (LIVE, SIMULATED)
    }
    names = {name.removesuffix("_s"): value for name, value in typed[LIVE].items()}
    if live is None:
        refuse(names, "requires --live; a simulated call takes the same time each time")
    if machine is None:
        faults = {name.replace("faults", "fault"): None for name in typed[SIMULATED]}
        refuse(faults, "requires --machine")
    simulated = {name: value for name, value in options.items() if only[name] != LIVE}
    measured = {name: value for name, value in options.items() if only[name] != SIMULATED}
    return simulated, measured


def _machines(
    name: str, size: dict[str, Any], gpus: int | None, load: Callable[..., _Machine]
) -> list[tuple[str, _Machine]]:
    """The machine in the given size, with each combination of settings as text.

    Raises:
        ConfigError: there is no such machine, or it does not run collectives.
    """
    size = dict(size)
    settings = size.pop("settings", None)
    if gpus is not None:
        refuse({each: None for each in size if each != "without"}, "and -g exclude each other")
        size |= _size_of(load(name), gpus)
    if settings is None:
        return [("", load(name, **size))]
    from towpath.specs.override import combinations

    return [(", ".join(each), load(name, settings=each, **size)) for each in combinations(settings)]


def _size_of(machine: object, gpus: int) -> dict[str, int]:
    """The options of `towpath.load` for a number of ranks: part of one host, or whole hosts."""
    from towpath import GpuCluster

    if isinstance(machine, GpuCluster) and gpus <= machine.spec.gpus_per_host:
        return {"hosts": 1, "ranks_per_host": gpus}
    return {"ranks": gpus}


def _trace_size(text: str | None, *, is_traced: bool) -> int | None:
    from towpath.api.result import timeline_size
    from towpath.specs.sizes import parse_size

    if not is_traced:
        refuse(given(trace_size=text), "requires --trace or --out")
    return None if text is None else timeline_size([], parse_size(text))
