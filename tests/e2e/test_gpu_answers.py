# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Answers on clusters of GPUs: the choice is not beaten by its own options, and times rise."""

import random

import pytest

from towpath import ConfigError, algorithms, load, machines

MACHINES = ("dgx-h100", "dgx-b200", "dgx-a100", "mi300x", "pcie-8gpu", "gh200-4gpu")
SHIPPED = tuple(machine.name for machine in machines() if machine.kind == "gpu_cluster")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce")
PROTOCOLS = ("Simple", "LL", "LL128")
CHANNELS = (1, 2, 4, 8, 16, 24, 32)
GAIN = 0.97  # what a single change may reach at best, of the chosen time


def faster_options(machine, collective, size_bytes):
    """The chosen row, and every single change that is faster than it may be."""
    chosen = machine.run(collective, size_bytes=size_bytes, data=False).rows[0]
    own = {"algorithm": chosen.algorithm, "protocol": chosen.protocol}
    changes = [own | {"channels": channels} for channels in CHANNELS]
    changes += [own | {"channels": chosen.channels, "protocol": protocol} for protocol in PROTOCOLS]
    changes += [{"algorithm": each.name} for each in algorithms(collective)]
    found = []
    for options in changes:
        try:
            row = machine.run(collective, size_bytes=size_bytes, data=False, **options).rows[0]
        except ConfigError:
            continue
        if row.time_us < GAIN * chosen.time_us:
            found.append((row, options))
    return chosen, found


def random_cases(count, seed, names=MACHINES):
    numbers = random.Random(seed)
    for _ in range(count):
        place = numbers.choice(names), numbers.choice(COLLECTIVES)
        yield *place, round(2 ** numbers.uniform(10, 28)) // 512 * 512


@pytest.mark.parametrize(
    ("name", "collective", "size_bytes"),
    [("mi300x", "all_reduce", 64 << 20), *random_cases(6, 1)],
)
def test_no_single_option_beats_the_choice(name, collective, size_bytes):
    chosen, found = faster_options(load(name, hosts=1), collective, size_bytes)
    assert not found, chosen


def slower_shipped_choices(cases):
    """The choices of `choices.json` that a search beats. It has none for integers."""
    slower = []
    for name, hosts, collective, size_bytes in cases:
        machine = load(name, hosts=hosts)
        shipped, searched = (
            machine.run(collective, size_bytes=size_bytes, data=False, dtype=dtype).row
            for dtype in ("float32", "int32")
        )
        if searched.time_us < GAIN * shipped.time_us:
            slower.append((name, hosts, shipped, searched))
    return slower


def random_shipped_cases(count, seed, bytes_max):
    numbers = random.Random(seed)
    for _ in range(count):
        name = numbers.choice(("dgx-h100", "dgx-b200", "dgx-a100", "mi300x"))
        size_bytes = 1 << numbers.randrange(3, bytes_max.bit_length())
        yield name, numbers.choice((1, 2)), numbers.choice(COLLECTIVES), size_bytes


def test_a_search_finds_no_faster_schedule_than_the_shipped_choices():
    assert not slower_shipped_choices(random_shipped_cases(4, 7, 1 << 20))


@pytest.mark.long
def test_a_search_finds_no_faster_schedule_than_many_shipped_choices():
    assert not slower_shipped_choices(random_shipped_cases(200, 8, 1 << 30))


def test_a_changed_machine_is_searched():
    """NVLinks a hundred times as slow make fewer bytes worth more steps."""
    slow = load("dgx-h100", hosts=1, settings=["link_types.nvlink.rate_gb_per_s=3.7"])
    chosen = slow.run("all_gather", size_bytes="64K", data=False).row
    for protocol in PROTOCOLS:
        row = slow.run("all_gather", size_bytes="64K", data=False, protocol=protocol).row
        assert chosen.time_us <= row.time_us / GAIN


# More than 32 ranks have fewer candidates: a note names those left out.
@pytest.mark.long
@pytest.mark.parametrize("name", SHIPPED)
def test_no_single_option_beats_many_choices(name):
    spec = load(name, hosts=1).spec
    hosts = (1, 2) if spec.fabric else (1,)
    beaten = []
    for number, (_, collective, size_bytes) in enumerate(random_cases(20, name, [name])):
        machine = load(
            name, hosts=hosts[number % len(hosts)], ranks_per_host=min(8, spec.gpus_per_host)
        )
        chosen, found = faster_options(machine, collective, size_bytes)
        if found:
            beaten.append((machine, chosen, found))
    assert not beaten


def falling_times(name, hosts, collective, options):
    """Neighboring sizes with a time that falls, by more than the rounding of chunks."""
    sizes = [8 << power for power in range(0, 27, 2)]
    try:
        rows = load(name, hosts=hosts).run(
            collective, size_bytes=sizes, data=False, **options
        ).rows  # fmt: skip
    except ConfigError:
        return []
    return [
        (small, large)
        for small, large in zip(rows, rows[1:], strict=False)
        if large.time_us < 0.99 * small.time_us
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("algorithm", ["ring", "tree", "nvls", "two_shot", "one_shot_pull"])
def test_times_rise_with_the_size(algorithm, protocol):
    options = {"algorithm": algorithm, "protocol": protocol, "channels": 8}
    assert not falling_times("dgx-h100", 1, "all_reduce", options)


@pytest.mark.long
@pytest.mark.parametrize("name", MACHINES)
def test_times_rise_on_every_machine(name):
    found = [
        (collective, hosts, options)
        for collective in COLLECTIVES
        for hosts in (1, 2)
        for protocol in PROTOCOLS
        for channels in (1, 8, 32)
        if falling_times(
            name, hosts, collective,
            options := {"algorithm": None, "protocol": protocol, "channels": channels},
        )
    ]  # fmt: skip
    assert not found


@pytest.mark.parametrize("link", ["nvlink", "pcie", "infiniband"])
def test_a_better_link_slows_no_answer_down(link):
    usual = load("dgx-h100", hosts=2)
    rate = usual.spec.link_types[link].rate_gb_per_s.value
    better = load("dgx-h100", hosts=2, settings=[f"link_types.{link}.rate_gb_per_s={1.5 * rate:g}"])
    for protocol in PROTOCOLS:
        options = {"algorithm": "ring", "protocol": protocol, "data": False}
        for size in ("8", "64K", "4M", "256M"):
            before = usual.run(size_bytes=size, **options).time_us
            assert better.run(size_bytes=size, **options).time_us < 1.01 * before
