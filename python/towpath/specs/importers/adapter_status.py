# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the output of `ibstatus` and `rdma link`: the rate, kind and state of network adapters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from towpath.errors import ConfigError, quoted

PORTS_MAX = 1024
RATE_GBIT_MAX = 10_000

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_IBSTATUS = re.compile(
    r"Infiniband device '([A-Za-z0-9_.:-]{1,64})' port ([0-9]{1,3}) status:\s*\Z"
)
_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec(?: \(([^()]{1,40})\))?\Z")
_RDMA_LINK = re.compile(
    r"(?:link|[0-9]{1,4}/[0-9]{1,3}:) ([A-Za-z0-9_.-]{1,64})/([0-9]{1,3}):?(?: |\Z)"
)
# A part of each first line of a port, which most texts of many lines do not contain.
_PART_OF_STATUS = re.compile(r"Infiniband device '|link [A-Za-z0-9_.-]|[0-9]/[0-9]{1,3}: ")
_LAYERS = ("InfiniBand", "Ethernet")
_STATES = ("NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")


@dataclass(frozen=True)
class AdapterPort:
    """A port of a network adapter.

    Attributes:
        device: the adapter, "mlx5_0".
        port: its number, from 1.
        layer: "InfiniBand" or "Ethernet"; None if the text does not state it.
        is_up: True if it carries data; None if the text does not state it.
        rate_gbit: rate of the line in 1e9 bits per second; None if the text does not state it.
        words: the rate in its original form.
        origin: the file or tool that states the rate.
    """

    device: str
    port: int
    layer: str | None = None
    is_up: bool | None = None
    rate_gbit: float | None = None
    words: str = ""
    origin: str = "ibstatus"


def is_status(text: str) -> bool:
    """True if a text resembles the output of `ibstatus` or `rdma link`."""
    plain = _ESCAPE.sub("", text)
    if _PART_OF_STATUS.search(plain) is None:
        return False
    lines = (line.strip() for line in plain.split("\n") if "/" in line or "status" in line)
    return any(_IBSTATUS.match(line) or _RDMA_LINK.match(line) for line in lines)


def parse_status(text: str, file: str) -> list[AdapterPort]:
    """Parses the ports in the output of `ibstatus` or `rdma link`; other lines are skipped.

    Args:
        text: the file's content.
        file: name of the file, for errors.

    Returns:
        One entry per port, in the order of the text.

    Raises:
        ConfigError: the text has no port, a port twice, or an unknown value.
    """
    lines = [line.strip() for line in _ESCAPE.sub("", text).split("\n")]
    ports: dict[tuple[str, int], AdapterPort] = {}
    for line, port in [*_ibstatus(lines, file), *_rdma_links(lines, file)]:
        key = (port.device, port.port)
        if key in ports:
            problem = f"names port {port.port} of {quoted(port.device)} a second time"
            raise ConfigError(problem, file=file, line=line)
        if len(ports) >= PORTS_MAX:
            raise ConfigError(f"has more than {PORTS_MAX} ports, the maximum", file=file, line=line)
        ports[key] = port
    if not ports:
        problem = "is not the output of ibstatus or rdma link: it names no adapter"
        raise ConfigError(problem, file=file, line=1)
    return list(ports.values())


def merged(ports: Iterable[AdapterPort]) -> dict[str, AdapterPort]:
    """The best port of each adapter, with the information of all texts.

    Args:
        ports: ports from one or several texts; earlier texts have priority.

    Returns:
        The port of each adapter that is up and has the highest rate.
    """
    known: dict[tuple[str, int], AdapterPort] = {}
    for port in ports:
        key = (port.device, port.port)
        before = known.get(key, port)
        known[key] = AdapterPort(
            port.device, port.port, before.layer or port.layer,
            port.is_up if before.is_up is None else before.is_up and port.is_up is not False,
            before.rate_gbit or port.rate_gbit, before.words or port.words,
            before.origin if before.rate_gbit else port.origin,
        )  # fmt: skip
    best: dict[str, AdapterPort] = {}
    for port in known.values():
        other = best.get(port.device)
        if other is None or _rank(port) > _rank(other):
            best[port.device] = port
    return best


def _rank(port: AdapterPort) -> tuple[bool, float]:
    return port.is_up is not False, port.rate_gbit or 0


def _ibstatus(lines: list[str], file: str) -> Iterator[tuple[int, AdapterPort]]:
    """Blocks of `ibstatus`: a heading, and fields up to the next empty line or heading."""
    starts = [n for n, line in enumerate(lines) if "status" in line and _IBSTATUS.match(line)]
    for start in starts:
        heading = _IBSTATUS.match(lines[start])
        assert heading is not None
        fields: dict[str, tuple[int, str]] = {}
        for number in range(start + 1, len(lines)):
            name, colon, value = lines[number].partition(":")
            if not colon or _IBSTATUS.match(lines[number]):
                break
            fields.setdefault(name.strip(), (number + 1, value.strip()))
        line, rate = fields.get("rate", (start + 1, ""))
        match = _RATE.match(rate)
        if match is None or not 0 < float(match[1]) <= RATE_GBIT_MAX:
            allowed = f"it must be like '400 Gb/sec (4X NDR)', up to {RATE_GBIT_MAX}"
            problem = (
                f"is {quoted(rate)}; {allowed}" if "rate" in fields else f"is missing; {allowed}"
            )
            raise ConfigError(problem, file=file, line=line, field="rate")
        yield start + 1, AdapterPort(
            heading[1], int(heading[2]), _layer(fields, file), _is_up(fields, file),
            float(match[1]), rate,
        )  # fmt: skip


def _layer(fields: dict[str, tuple[int, str]], file: str) -> str | None:
    if "link_layer" not in fields:
        return None
    line, layer = fields["link_layer"]
    if layer not in _LAYERS:
        problem = f"is {quoted(layer)}; it must be {' or '.join(_LAYERS)}"
        raise ConfigError(problem, file=file, line=line, field="link_layer")
    return layer


def _is_up(fields: dict[str, tuple[int, str]], file: str) -> bool | None:
    if "state" not in fields:
        return None
    line, text = fields["state"]
    return _state(text.partition(":")[2].strip(), file, line)


def _state(word: str, file: str, line: int) -> bool:
    if word not in _STATES:
        problem = f"is {quoted(word)}; it must be one of {', '.join(_STATES)}"
        raise ConfigError(problem, file=file, line=line, field="state")
    return word in ("ACTIVE", "ACTIVE_DEFER")


def _rdma_links(lines: list[str], file: str) -> Iterator[tuple[int, AdapterPort]]:
    """Lines of `rdma link`, which have no rate: alternating names and values."""
    for number, line in enumerate(lines, 1):
        match = _RDMA_LINK.match(line) if "/" in line else None
        if match is None:
            continue
        words = line[match.end() :].split()
        fields = dict(zip(words[::2], words[1::2], strict=False))
        if "state" not in fields:
            raise ConfigError("is missing", file=file, line=number, field="state")
        layer = "InfiniBand" if "subnet_prefix" in fields else "Ethernet"
        is_up = _state(fields["state"], file, number)
        yield number, AdapterPort(match[1], int(match[2]), layer, is_up)
