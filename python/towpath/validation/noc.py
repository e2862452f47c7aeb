# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on chips: traffic patterns, DRAM bandwidth and traced kernels."""

from __future__ import annotations

import os
import random
import statistics
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.errors import quoted
from towpath.specs import catalogue
from towpath.specs.importers.soc_descriptor import CHIP_OF_ARCHITECTURE
from towpath.studies import replay
from towpath.studies.noc_trace import NocTrace, load_noc_trace
from towpath.validation import noc_patterns
from towpath.validation.noc_patterns import MECHANISMS, PATTERNS, Pattern
from towpath.validation.table_kind import (
    CannotSimulate,
    Context,
    Prediction,
    Row,
    TableKind,
    one_of,
    real,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from towpath.specs.chip_spec import ChipSpec

# Flits times hops of one run; a row beyond is run smaller and scaled. Some seconds of simulation.
FLIT_HOPS_MAX = 30_000_000
_TRANSACTIONS_MAX = 1_000_000
_TRANSACTION_BYTES_MAX = 1 << 20
_SUBORDINATES_MAX = 4096
_BOOLEANS = ("True", "False")
_SEEDS = 5  # placements of which the median is taken
# Runs of what depends on chance, of which the median is taken: fewer where all would take too long,
# but never one alone.
_RUNS_MIN = 3
_RUNS_MAX = 15
_RUNS_FLIT_HOPS_MAX = 2 * FLIT_HOPS_MAX


@lru_cache(maxsize=8)
def _spec(name: str) -> ChipSpec:
    return catalogue.load_chip(name)


@lru_cache(maxsize=8)
def _chip(name: str) -> _core.Chip:
    return _spec(name).build()


@lru_cache(maxsize=8)
def _whole_chip(name: str) -> _core.Chip:
    """The chip without harvesting: the published placements need every row."""
    return _spec(name).with_harvested(()).build()


# --- runs that would take too long ----------------------------------------------------------------


@dataclass(frozen=True)
class Amount:
    """Data that each master moves to each of its subordinates."""

    transactions: int
    transaction_bytes: int


@dataclass(frozen=True)
class Outcome:
    """Result of one run: the value, and the cost of the simulation."""

    cycles: float
    flit_hops: int


def run_scaled(
    run: Callable[[Amount], Outcome], amount: Amount, packet_bytes_max: int
) -> tuple[float, dict[str, Any]]:
    """The cycles of `amount`, and for the row the size of the runs from which they were
    extrapolated, if any.

    A run beyond FLIT_HOPS_MAX is extrapolated from two smaller ones, one twice as large as the
    other, by the line through them. A smaller run has fewer transactions, and below one transaction
    fewer packets, but at least two packets, so that all masters together keep the network busy for
    long enough.
    """
    packets = -(-amount.transaction_bytes // packet_bytes_max)  # in one transaction
    units = amount.transactions * packets
    least = run(_part(amount, 1, packet_bytes_max))
    if units == 1:
        return least.cycles, {}
    if units * least.flit_hops <= FLIT_HOPS_MAX:
        return run(amount).cycles, {}
    most = _whole_units(max(FLIT_HOPS_MAX // max(least.flit_hops, 1), 2), packets)
    if most >= units:
        return run(amount).cycles, {}
    half = _whole_units(max(most // 2, 1), packets)
    large = run(_part(amount, most, packet_bytes_max))
    small = least if half == 1 else run(_part(amount, half, packet_bytes_max))
    slope = (large.cycles - small.cycles) / (most - half)
    part = _part(amount, most, packet_bytes_max)
    scaled_from = {
        "transactions": part.transactions, "transaction_bytes": part.transaction_bytes,
        "cycles": large.cycles,
    }  # fmt: skip
    return large.cycles + slope * (units - most), {"scaled_from": scaled_from}


def _whole_units(units: int, packets: int) -> int:
    """The number of packets that make whole transactions, or a part of one."""
    return units if units < packets else units - units % packets


def _part(amount: Amount, units: int, packet_bytes_max: int) -> Amount:
    """The first `units` packets of an amount."""
    packets = -(-amount.transaction_bytes // packet_bytes_max)
    if units >= packets:
        return Amount(units // packets, amount.transaction_bytes)
    return Amount(1, units * packet_bytes_max)


def _packet_bytes_max(chip: _core.Chip) -> int:
    return chip.router["flit_bytes"] * chip.router["packet_data_flits_max"]


# --- traffic patterns, as tt-metal's NoC estimator lists them -------------------------------------


def _chip_name(row: Row, context: Context) -> str:
    return context.machine or CHIP_OF_ARCHITECTURE[one_of(row, "arch", tuple(CHIP_OF_ARCHITECTURE))]


def pattern_of(row: Row) -> Pattern:
    """The pattern of a row.

    Raises:
        CannotSimulate: a field has an invalid value.
    """
    one_of(row, "memory", ("l1",))
    return Pattern(
        name=one_of(row, "pattern", PATTERNS),
        mechanism=one_of(row, "mechanism", MECHANISMS),
        subordinates=whole(row, "num_subordinates", _SUBORDINATES_MAX, least=0),
        same_axis=one_of(row, "same_axis", _BOOLEANS) == "True",
        has_state=one_of(row, "stateful", _BOOLEANS) == "True",
        includes_source=one_of(row, "loopback", _BOOLEANS) == "True",
    )


def amount_of(row: Row, pattern: Pattern) -> Amount:
    """The amount per subordinate; the table counts all transactions of a master.

    Raises:
        CannotSimulate: the transactions cannot be divided evenly.
    """
    transactions = whole(row, "num_transactions", _TRANSACTIONS_MAX)
    transaction_bytes = whole(row, "transaction_bytes", _TRANSACTION_BYTES_MAX)
    shares = 1 if pattern.is_multicast else max(pattern.subordinates, 1)
    if transactions % shares:
        raise CannotSimulate(
            f"num_transactions is {transactions}; it must be a multiple of the {shares} "
            "subordinates"
        )
    return Amount(transactions // shares, transaction_bytes)


def _predict_pattern(row: Row, context: Context) -> Prediction:
    """The median over the masters of issue loop and barrier.

    If there are several masters, their starts and the paths of their multicasts are random. The
    result is the median over several runs.
    """
    pattern = pattern_of(row)
    chip = _chip(_chip_name(row, context))

    def run(amount: Amount) -> Outcome:
        def outcome(seed: int) -> Outcome:
            programs = noc_patterns.programs(
                pattern, chip, amount.transactions, amount.transaction_bytes, seed
            )
            return _outcome(chip, programs, seed)

        first = outcome(1)
        is_alone = len(noc_patterns.cast_of(pattern, chip).masters) == 1
        runs = 1 if is_alone else _runs(first)
        others = [outcome(seed).cycles for seed in range(2, runs + 1)]
        return Outcome(statistics.median([first.cycles, *others]), first.flit_hops)

    cycles, details = run_scaled(run, amount_of(row, pattern), _packet_bytes_max(chip))
    return Prediction(cycles, details)


def _runs(outcome: Outcome) -> int:
    """The number of runs that fit into the time limit, with a minimum; an odd number, so that one
    is in the middle.
    """
    allowed = min(_RUNS_FLIT_HOPS_MAX // max(outcome.flit_hops, 1), _RUNS_MAX)
    return max(allowed - (allowed + 1) % 2, _RUNS_MIN)


def _outcome(chip: _core.Chip, programs: list[_core.TrafficProgram], seed: int) -> Outcome:
    result = _core.run_traffic(chip, programs, seed=seed)
    spans = zip(result.begin_cycles, result.end_cycles, strict=True)
    return Outcome(statistics.median(end - begin for begin, end in spans), result.flit_hops)


def _pattern_label(row: Row) -> str:
    words = [f"{row['num_transactions']} x {row['transaction_bytes']} B"]
    if row["num_subordinates"] != "0":
        words.append(f"{row['num_subordinates']} sub")
    words += [name for name in ("stateful", "loopback") if row[name] == "True"]
    if row["same_axis"] == "False":
        words.append("both axes")
    return ", ".join(words)


# --- DRAM bandwidth -------------------------------------------------------------------------------

_TILE_BYTES = 1 << 20  # what every tile moves
_REQUEST_BYTES = 8192


@dataclass(frozen=True)
class DramPair:
    """A worker, with the DRAM tile and channel for its data."""

    worker: tuple[int, int]
    tile: tuple[int, int]
    channel: int


def _hops(
    chip: _core.Chip, row: Row, pair: tuple[tuple[int, int], tuple[int, int]]
) -> tuple[int, int]:
    """Rows and columns that data crosses from or to a worker."""
    (worker_x, worker_y), (tile_x, tile_y) = pair
    towards = 1 if row["direction"] == "write" else -1  # from worker to tile, or back
    if row["noc"] == "1":
        towards = -towards
    vertical = (tile_y - worker_y) * towards % chip.height
    return vertical, (tile_x - worker_x) * towards % chip.width


def place_carefully(chip: _core.Chip, row: Row, channels: int, tiles: int) -> list[DramPair]:
    """Each channel uses its own DRAM tile, with workers in that tile's row if it has any.

    The shortest path of the data comes first, above all the smallest number of rows.
    """
    every_channel = _channels(chip)[:channels]
    candidates = sorted(
        (*_hops(chip, row, (worker, tile)), number, tile, worker)
        for number, (group, _) in enumerate(every_channel)
        for tile in chip.dram_groups[group]
        for worker in chip.workers
    )
    tile_of: dict[int, tuple[int, int]] = {}
    pairs: list[DramPair] = []
    left = [tiles // channels] * channels
    taken: set[tuple[int, int]] = set()
    for _, _, number, tile, worker in candidates:
        is_of_other = tile in tile_of.values() and tile_of.get(number) != tile
        if left[number] == 0 or worker in taken or is_of_other:
            continue
        if tile_of.setdefault(number, tile) != tile:
            continue
        left[number] -= 1
        taken.add(worker)
        pairs.append(DramPair(worker, tile, every_channel[number][1]))
    return pairs


def place_randomly(
    chip: _core.Chip, channels: int, tiles: int, chance: random.Random
) -> list[DramPair]:
    """Random workers, an equal number for every channel, with a separate tile for each channel.

    With tiles shared by two channels, no placement reaches the measured rate: a link of 32 GB/s
    would carry the data of two channels of 22 GB/s.
    """
    tile_of = {}
    for group, group_tiles in enumerate(chip.dram_groups):
        for channel, tile in enumerate(chance.sample(group_tiles, chip.dram["channels_per_group"])):
            tile_of[group, channel] = tile
    chosen = chance.sample(_channels(chip), channels)
    workers = chance.sample(sorted(chip.workers), tiles)
    return [
        DramPair(worker, tile_of[chosen[number % channels]], chosen[number % channels][1])
        for number, worker in enumerate(workers)
    ]


def _channels(chip: _core.Chip) -> list[tuple[int, int]]:
    """Every channel as its group and its number in the group."""
    per_group = chip.dram["channels_per_group"]
    return [
        (group, channel) for group in range(len(chip.dram_groups)) for channel in range(per_group)
    ]


def dram_programs(row: Row, pairs: list[DramPair], amount: Amount) -> list[_core.TrafficProgram]:
    """A program per worker: all its requests, then a barrier."""
    direction = row["direction"]
    return [
        _core.TrafficProgram(
            core=pair.worker, noc=int(row["noc"]), start_cycle=0,
            steps=[
                _core.TrafficStep(
                    direction, to=pair.tile, channel=pair.channel, count=amount.transactions,
                    size_bytes=amount.transaction_bytes, dynamic_vc=row["vc"] == "Dynamic",
                ),
                _core.TrafficStep(f"{direction}_barrier"),
            ],
        )
        for pair in pairs
    ]  # fmt: skip


def _predict_dram(row: Row, context: Context) -> Prediction:
    """All bytes over the time from the first start to the last end."""
    chip = _chip(context.machine) if context.machine else _whole_chip("wormhole")
    channels = whole(row, "channels", len(_channels(chip)))
    tiles = whole(row, "n_tiles", len(chip.workers))
    for column, allowed in _DRAM_WORDS.items():
        one_of(row, column, allowed)
    if tiles % channels:
        raise CannotSimulate(
            f"n_tiles is {tiles}; it must be a multiple of the {channels} channels"
        )
    if row["selection"] == "carefully":
        placements = [place_carefully(chip, row, channels, tiles)]
    else:
        seeds = map(random.Random, range(1, _SEEDS + 1))
        placements = [place_randomly(chip, channels, tiles, chance) for chance in seeds]

    def run(pairs: list[DramPair], amount: Amount) -> Outcome:
        result = _core.run_traffic(chip, dram_programs(row, pairs, amount))
        return Outcome(max(result.end_cycles) - min(result.begin_cycles), result.flit_hops)

    amount = Amount(_TILE_BYTES // _REQUEST_BYTES, _REQUEST_BYTES)
    bytes_per_cycle: list[float] = []
    details: dict[str, Any] = {}
    for pairs in placements:
        cycles, details = run_scaled(partial(run, pairs), amount, _packet_bytes_max(chip))
        bytes_per_cycle.append(tiles * _TILE_BYTES / cycles)
    gb_per_s = statistics.median(bytes_per_cycle) * chip.clock_mhz / 1000
    if len(placements) > 1:
        details = details | {"seeds": _SEEDS}
    return Prediction(gb_per_s, details)


_DRAM_WORDS = {
    "selection": ("carefully", "randomly"),
    "direction": ("read", "write"),
    "vc": ("Static", "Dynamic"),
    "noc": ("0", "1"),
}


# --- traced kernels -------------------------------------------------------------------------------


def _trace_file(row: Row, context: Context) -> Path:
    name = row["trace"]
    if Path(name).name != name or not name.endswith(".json"):
        problem = "it must be the name of a JSON file in traces/noc beside the table"
        raise CannotSimulate(f"trace is {quoted(name)}; {problem}")
    folders = [context.folder]
    if elsewhere := os.environ.get("TOWPATH_DATA"):
        folders.append(Path(elsewhere))
    files = [folder / "traces" / "noc" / name for folder in folders]
    for file in files:
        if file.is_file():
            return file
    raise CannotSimulate(
        f"the trace {name} is not here; it is looked for in traces/noc beside the table and in "
        "$TOWPATH_DATA/traces/noc"
    )


@lru_cache(maxsize=4)
def _trace(path: Path, grid: tuple[int, int]) -> NocTrace:
    return load_noc_trace(path, grid)


def _predict_trace(row: Row, context: Context) -> Prediction:
    spec = _spec(context.machine or "wormhole")
    trace = _trace(_trace_file(row, context), (spec.grid.width, spec.grid.height))
    predicted = replay.replay(trace, spec).predicted
    return Prediction(
        predicted.longest_core,
        {
            "predicted_median_core": predicted.median_core,
            "predicted_first_begin_to_last_event": predicted.first_begin_to_last_event,
        },
    )


NOC_KINDS = [
    TableKind(
        name="traffic patterns on a chip's NoC",
        columns=frozenset({
            "arch", "pattern", "memory", "mechanism", "num_transactions", "num_subordinates",
            "same_axis", "stateful", "loopback", "transaction_bytes", "cycles",
        }),
        unit="cycles",
        identity=(
            "arch", "pattern", "memory", "mechanism", "num_transactions", "num_subordinates",
            "same_axis", "stateful", "loopback",
        ),
        group=lambda row: f"{row['arch']} {row['pattern']} {row['mechanism']}",
        measured=lambda row: real(row, "cycles"),
        predict=_predict_pattern,
        label=_pattern_label,
        check_machine=_spec,
        is_slow=True,
    ),
    TableKind(
        name="DRAM bandwidth of a chip",
        columns=frozenset({
            "channels", "n_tiles", "selection", "direction", "vc", "noc", "GBps",
        }),
        unit="GB/s",
        identity=("channels", "n_tiles", "selection", "direction", "vc", "noc"),
        group=lambda row: f"{row['channels']} channels, {row['direction']} {row['selection']}",
        measured=lambda row: real(row, "GBps"),
        predict=_predict_dram,
        label=lambda row: f"{row['n_tiles']} tiles, {row['vc']}, NoC {row['noc']}",
        check_machine=_spec,
        is_slow=True,
    ),
    TableKind(
        name="traced kernels",
        columns=frozenset({
            "trace", "longest_core_begin_to_last_event_cycles",
            "median_core_begin_to_last_event_cycles", "first_begin_to_last_event_cycles",
        }),
        unit="cycles",
        identity=("trace",),
        group=lambda row: "from DRAM" if row["trace"].startswith("DRAM") else "between cores",
        measured=lambda row: real(row, "longest_core_begin_to_last_event_cycles"),
        predict=_predict_trace,
        label=lambda row: row["trace"].removesuffix(".json"),
        check_machine=_spec,
        is_slow=True,
    ),
]  # fmt: skip
