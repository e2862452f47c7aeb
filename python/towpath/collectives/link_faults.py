# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Failing links between chips in a simulated run: "0:9,every=100us,training=5us"."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from towpath import _core
from towpath.errors import ConfigError, quoted

_END = re.compile(r"([0-9]{1,6}):([0-9]{1,6})", re.ASCII)
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ns|us|ms|s)", re.ASCII)
_TIME_US_MAX = 1e9
_US_OF_UNIT = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_ALLOWED = (
    "write CHIP:CHANNEL and options such as loss=0.01, at=20us, every=100us, dead=5us or"
    " dead=forever, training=5us"
)


@dataclass(frozen=True)
class LinkFault:
    """The faults of one link, named by either of its ends.

    Attributes:
        chip: number of the chip at one end.
        channel: Ethernet channel of that chip.
        frame_loss: probability of losing a frame or an acknowledgement.
        drop_at_us: time of the first drop of the line; infinite: it never drops.
        drop_period_us: time from one drop to the next; infinite: it drops once.
        dead_time_us: time from a drop until the line can be trained; infinite: it stays down.
        training_time_us: duration of training; None: the value of the chip's spec.
        text: the fault as given.
    """

    chip: int
    channel: int
    frame_loss: float = 0.0
    drop_at_us: float = math.inf
    drop_period_us: float = math.inf
    dead_time_us: float = 0.0
    training_time_us: float | None = None
    text: str = ""

    def core(self) -> _core.LinkFaults:
        """The same faults in the form of the simulator."""
        return _core.LinkFaults(
            frame_loss=self.frame_loss, drop_at_us=self.drop_at_us,
            drop_period_us=self.drop_period_us, dead_time_us=self.dead_time_us,
            training_time_us=self.training_time_us,
        )  # fmt: skip


def parse_link_fault(text: str) -> LinkFault:
    """The fault that an option of the command line describes.

    If only `every` is given, the line drops for the first time after one period.

    Raises:
        ConfigError: the text is not a valid fault.

    >>> parse_link_fault("0:9,every=100us,training=5us").drop_at_us
    100.0
    """
    end, *parts = (part.strip() for part in text.split(","))
    match = _END.fullmatch(end)
    if match is None or not parts:
        raise ConfigError(f"--link-fault is {quoted(text)}; {_ALLOWED}")
    values: dict[str, float] = {}
    for part in parts:
        key, _, value = part.partition("=")
        if key not in _PARSERS or key in values:
            where = f"{quoted(part)} of --link-fault {quoted(text)}"
            raise ConfigError(f"{where} is unknown or repeated; {_ALLOWED}")
        values[key] = _PARSERS[key](part, value)
    if not values.keys() & {"loss", "at", "every"}:
        raise ConfigError(f"--link-fault {quoted(text)} never drops the link; {_ALLOWED}")
    if values.keys() & {"dead", "training"} and not values.keys() & {"at", "every"}:
        what = "says how a dropped link comes back, and not when it drops"
        raise ConfigError(f"--link-fault {quoted(text)} {what}; {_ALLOWED}")
    return LinkFault(
        int(match[1]), int(match[2]), values.get("loss", 0.0),
        values.get("at", values.get("every", math.inf)), values.get("every", math.inf),
        values.get("dead", 0.0), values.get("training"), text=",".join(parts),
    )  # fmt: skip


def _parse_time_us(part: str, value: str) -> float:
    match = _TIME.fullmatch(value)
    time_us = float(match[1]) * _US_OF_UNIT[match[2]] if match else math.inf
    if time_us > _TIME_US_MAX:
        raise ConfigError(
            f"{quoted(part)} has no time such as 20us; units are ns, us, ms and s, up to 1000s"
        )
    return time_us


def _parse_dead_time_us(part: str, value: str) -> float:
    return math.inf if value == "forever" else _parse_time_us(part, value)


def _parse_loss(part: str, value: str) -> float:
    try:
        loss = float(value)
    except ValueError:
        loss = math.nan
    if not 0 < loss < 1:
        raise ConfigError(f"{quoted(part)} has no probability above 0 and below 1")
    return loss


_PARSERS = {
    "loss": _parse_loss, "at": _parse_time_us, "every": _parse_time_us,
    "dead": _parse_dead_time_us, "training": _parse_time_us,
}  # fmt: skip


def links_of(cluster: _core.ChipCluster, faults: Sequence[LinkFault]) -> dict[int, LinkFault]:
    """The faults by the number of their link in the cluster.

    Raises:
        ConfigError: there is no such link, or a link has two faults.
    """
    by_link: dict[int, LinkFault] = {}
    for fault in faults:
        try:
            link = cluster.link_at((fault.chip, fault.channel))
        except ValueError as error:
            raise ConfigError(f"a link fault: {error}") from None
        if link is None:
            channels = ", ".join(map(str, cluster.active_channels(fault.chip)))
            raise ConfigError(
                f"a link fault is at channel {fault.channel} of chip {fault.chip}, which has "
                f"no link; channels with links are {channels}"
            )
        if link in by_link:
            raise ConfigError(
                f"the link at channel {fault.channel} of chip {fault.chip} has two faults; give one"
            )
        by_link[link] = fault
    return by_link
