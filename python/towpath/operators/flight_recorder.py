# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads dumps of PyTorch's flight recorder: a pickle or JSON per rank."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from towpath.errors import ConfigError
from towpath.operators.finding import Evidence, Finding
from towpath.operators.observed import Document, Observed
from towpath.operators.plain_pickle import is_pickle, load_plain

NAME = "PyTorch flight recorder"
_RANK = re.compile(r"([0-9]{1,7})(?:\.(?:pkl|pickle|json|bin))?\Z")
_ENTRIES_MAX = 1_000_000
RANKS_MAX = 1 << 24
_NUMBER_MAX = 1 << 63
_TENSORS_MAX, _DIMENSIONS_MAX = 4096, 16
_TENSORS_SHOWN = 4
# Bytes of an element, by PyTorch's name of its type.
_TYPE_BYTES = {
    "float": 4, "half": 2, "bfloat16": 2, "double": 8, "int": 4, "short": 2, "long": 8, "byte": 1,
    "char": 1, "bool": 1, "float32": 4, "float16": 2, "float64": 8, "int32": 4, "int64": 8,
    "int16": 2, "int8": 1, "uint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1, "fp8": 1, "complexfloat": 8, "complexdouble": 16,
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A collective in a dump.

    Attributes:
        rank: the rank that recorded it.
        group: name of its process group.
        number: its number in the group, equal on all ranks.
        name: name of the operation, such as "nccl:all_reduce".
        sizes: sizes of its inputs, as text.
        state: "scheduled", "started" or "completed".
        duration_ms: its duration in milliseconds, or None.
        input_bytes: bytes of its inputs, or 0 if the type is unknown.
        created_ns: time at which the program called it, in nanoseconds since 1970, or None.
        evidence: its place.
    """

    rank: int
    group: str
    number: int
    name: str
    sizes: str
    state: str
    duration_ms: float | None
    input_bytes: int
    created_ns: int | None
    evidence: Evidence


@dataclass(frozen=True)
class Dump:
    """The dump of one rank.

    Attributes:
        rank: the rank.
        groups: ranks of each process group, by name. Empty if the dump does not state them.
        entries: collectives in the order of the dump.
    """

    rank: int
    groups: dict[str, tuple[int, ...]]
    entries: tuple[Entry, ...]


def recognizes(document: Document) -> bool:
    """True if a document is such a dump."""
    if is_pickle(document.data):
        return True
    text = document.text.lstrip()
    return (
        text.startswith("{")
        and '"entries"' in text
        and ('"pg_config"' in text or '"collective_seq_id"' in text)
    )


def read(documents: Sequence[Document]) -> Observed:
    """Reads the dumps of several ranks, and compares them.

    Raises:
        ConfigError: a file is not such a dump.
    """
    dumps = [parse_dump(document) for document in documents]
    found = Observed(formats=[NAME], findings=compare(dumps))
    counts = sorted(len(dump.entries) for dump in dumps)
    span = str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    found.facts["flight recorder"] = f"{len(dumps)} dumps of {span} collectives"
    return found


def parse_dump(document: Document) -> Dump:
    """The dump in a document.

    Raises:
        ConfigError: the file is not such a dump.
    """
    data = _load(document)
    entries = data.get("entries") if isinstance(data, dict) else None
    if not isinstance(entries, list) or len(entries) > _ENTRIES_MAX:
        problem = "is not a flight recorder dump: it has no list 'entries'"
        raise ConfigError(problem, file=document.file)
    rank, groups = _rank(data, document.file), _groups(data)
    found = []
    for number, each in enumerate(entries, 1):
        if not isinstance(each, dict):
            raise ConfigError(f"entry {number} is not a dict", file=document.file)
        if each.get("is_p2p") is not True:
            found.append(_entry(each, rank, document, number))
    return Dump(rank, groups, tuple(found))


def _load(document: Document) -> Any:
    if is_pickle(document.data):
        return load_plain(document.data, document.file)
    try:
        return json.loads(document.text)
    except (ValueError, RecursionError):
        raise ConfigError("is not valid JSON", file=document.file, line=1) from None


def _rank(data: dict[str, Any], file: str) -> int:
    own = data.get("rank")
    if isinstance(own, int) and 0 <= own < RANKS_MAX:
        return own
    match = _RANK.search(file)
    if match is None:
        problem = "does not end with the number of its rank, as in nccl_trace_rank_3"
        raise ConfigError(problem, file=file)
    return int(match[1])


def _groups(data: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    config = data.get("pg_config")
    groups: dict[str, tuple[int, ...]] = {}
    for name, each in config.items() if isinstance(config, dict) else ():
        ranks = each.get("ranks") if isinstance(each, dict) else None
        if isinstance(ranks, str) and len(ranks) < 10_000_000:
            ranks = [int(word) for word in re.findall(r"[0-9]{1,7}", ranks)]
        if isinstance(ranks, list):
            groups[_text(name)] = tuple(
                one for one in ranks if isinstance(one, int) and 0 <= one < RANKS_MAX
            )
    return groups


def type_bytes(name: str) -> int | None:
    """The bytes of an element of a type in PyTorch's words. None if the type is unknown.

    >>> type_bytes("BFloat16"), type_bytes("torch.int64"), type_bytes("x")
    (2, 8, None)
    """
    return _TYPE_BYTES.get(name.lower().removeprefix("torch."))


def _text(value: object, length_max: int = 64) -> str:
    """A text or number of a dump, shortened. Empty for anything else, however large."""
    if isinstance(value, str):
        return value[:length_max]
    is_number = isinstance(value, (int, float)) and abs(value) < _NUMBER_MAX
    return str(value) if is_number else ""


def _shapes(value: object) -> list[list[int]]:
    """The sizes of tensors. Empty if they are not lists of numbers, or too many."""
    if not isinstance(value, (list, tuple)) or len(value) > _TENSORS_MAX:
        return []
    shapes = []
    for each in value:
        if not isinstance(each, (list, tuple)) or len(each) > _DIMENSIONS_MAX:
            return []
        if not all(isinstance(one, int) and 0 <= one < 1 << 50 for one in each):
            return []
        shapes.append([int(one) for one in each])
    return shapes


def _shown_shapes(shapes: list[list[int]]) -> str:
    more = f" and {len(shapes) - _TENSORS_SHOWN} more" if len(shapes) > _TENSORS_SHOWN else ""
    return f"{shapes[:_TENSORS_SHOWN]}{more}"


def _entry(data: dict[str, Any], rank: int, document: Document, place: int) -> Entry:
    number = data.get("collective_seq_id", data.get("seq_id"))
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) >= _NUMBER_MAX:
        raise ConfigError(f"entry {place} has no collective_seq_id", file=document.file)
    group = data.get("process_group")
    name = _text(group[0] if isinstance(group, (list, tuple)) and group else data.get("pg_id", 0))
    operation, state = _text(data.get("profiling_name")), _text(data.get("state"), 16)
    shapes = _shapes(data.get("input_sizes"))
    duration, created = data.get("duration_ms"), data.get("time_created_ns")
    text = f"{operation} number {number} of group {name}, {state}"
    return Entry(
        rank, name, number, operation, _shown_shapes(shapes), state,
        float(duration) if isinstance(duration, (int, float)) and 0 <= duration < 1e12 else None,
        _bytes(shapes, data.get("input_dtypes")),
        created if isinstance(created, int) and 0 <= created < _NUMBER_MAX else None,
        document.evidence(place, text),
    )  # fmt: skip


def _bytes(shapes: list[list[int]], types: object) -> int:
    """The bytes of the inputs. 0 if they exceed all memories, or a type is unknown."""
    if not isinstance(types, (list, tuple)):
        return 0
    total = 0
    for shape, kind in zip(shapes, types, strict=False):
        total += math.prod(shape) * (type_bytes(_text(kind)) or 0)
    return total if total <= 1 << 50 else 0


def compare(dumps: list[Dump]) -> list[Finding]:
    """Compares the dumps of several ranks: missing ranks, and ranks with other collectives.

    Args:
        dumps: one dump per rank.
    """
    by_group: dict[str, dict[int, dict[int, Entry]]] = defaultdict(dict)
    members: dict[str, set[int]] = defaultdict(set)
    for dump in dumps:
        for entry in dump.entries:
            by_group[entry.group].setdefault(dump.rank, {})[entry.number] = entry
        for name, ranks in dump.groups.items():
            members[name].update(ranks)
    present = {dump.rank for dump in dumps}
    findings: list[Finding] = []
    for name, by_rank in sorted(by_group.items()):
        expected = (members.get(name) or set(by_rank)) & present
        findings += _of_group(name, by_rank, expected)
    return findings or _unfinished(dumps)


def _of_group(name: str, by_rank: dict[int, dict[int, Entry]], expected: set[int]) -> list[Finding]:
    if len(expected) < 2:
        return []
    for number in _shared_numbers(by_rank, expected):
        there = {rank: own[number] for rank, own in by_rank.items() if number in own}
        missing = sorted(expected - set(there))
        if missing:
            if all(each.state == "completed" for each in there.values()):
                continue
            return [_missing(name, number, missing, there)]
        if different := _different(name, number, there):
            return [different]
    return []


def _shared_numbers(by_rank: dict[int, dict[int, Entry]], expected: set[int]) -> list[int]:
    """The numbers that every rank's buffer still covers: a buffer keeps the last entries only."""
    starts = [min(by_rank[rank]) for rank in expected if by_rank.get(rank)]
    first = max(starts, default=0) if len(starts) == len(expected) else 0
    return sorted({number for own in by_rank.values() for number in own if number >= first})


def _missing(name: str, number: int, missing: list[int], there: dict[int, Entry]) -> Finding:
    waiting = next(iter(sorted(there.items())))[1]
    shown = ", ".join(map(str, missing[:8]))
    more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
    sentence = (
        f"rank {shown}{more} did not enter {waiting.name} number {number} of group {name}, in "
        f"which {len(there)} ranks wait"
    )
    return Finding("late_rank", sentence, (waiting.evidence,), 0.95)


def _different(name: str, number: int, there: dict[int, Entry]) -> Finding | None:
    """Ranks that called another operation, or with another size, under one number."""
    calls = Counter((each.name, _size_key(each)) for each in there.values())
    if len(calls) < 2:
        return None
    usual, _ = calls.most_common(1)[0]
    others = {r: e for r, e in sorted(there.items()) if (e.name, _size_key(e)) != usual}
    rank, entry = next(iter(others.items()))
    same = next(e for e in there.values() if (e.name, _size_key(e)) == usual)
    shown = ", ".join(map(str, list(others)[:8]))
    sentence = (
        f"rank {shown} called {entry.name} {entry.sizes} as number {number} of group {name}, "
        f"{len(there) - len(others)} ranks {same.name} {same.sizes}"
    )
    return Finding("mismatch", sentence, (entry.evidence, same.evidence), 0.95)


def _size_key(entry: Entry) -> str:
    """The sizes that must be equal on all ranks. Parts of gathers may differ."""
    is_uneven = any(word in entry.name for word in ("all_to_all", "gather", "scatter", "coalesced"))
    return "" if is_uneven else entry.sizes


def _unfinished(dumps: list[Dump]) -> list[Finding]:
    """A collective that started on all ranks and finished on none."""
    open_entries = [e for d in dumps for e in d.entries if e.state in ("started", "scheduled")]
    if not open_entries or len(dumps) < 2:
        return []
    first = min(open_entries, key=lambda each: (each.number, each.rank))
    ranks = sorted({e.rank for e in open_entries if e.number == first.number})
    stuck = [e.rank for e in open_entries if e.number == first.number and e.state == "scheduled"]
    if stuck and len(stuck) * 2 <= len(ranks):
        shown = ", ".join(map(str, sorted(stuck)[:8]))
        sentence = (
            f"rank {shown} called {first.name} number {first.number} but its GPU did not start it"
        )
        return [Finding("late_rank", sentence, (first.evidence,), 0.7)]
    sentence = f"{first.name} number {first.number} is open on {len(ranks)} of {len(dumps)} ranks"
    return [Finding("hang", sentence, (first.evidence,), 0.3, False)]
