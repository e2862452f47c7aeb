# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 000: cores, links and clusters, read from the described machines and their runs."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from towpath import _core
from towpath.api.machine import load
from towpath.errors import TowpathError
from towpath.reproduce.core_programs import (
    ANSWERS,
    ASKS,
    core,
    ethernet_kernel,
    free_link,
    pair,
    run,
    word,
)
from towpath.specs import catalogue
from towpath.specs.chip_cluster_spec import ChipClusterSpec, EthernetEnd

Result = dict[str, Any]

# The document's contrived example: two chips, one link.
_TWO_CHIPS = """\
form: chip_cluster
name: two
description: two Wormholes, one link
source: chosen
chips:
  - {chip: wormhole, x: 0, y: 0, rack: 0, shelf: 0, host_link: true}
  - {chip: wormhole, x: 1, y: 0, rack: 0, shelf: 0}
links: [[0/8, 1/0]]
"""
_FIRST_MISTAKES = {
    "link twice": _TWO_CHIPS.replace("[[0/8, 1/0]]", "[[0/8, 1/0], [0/8, 1/1]]"),
}


def cores() -> Result:
    """The Ethernet core of a Wormhole and the frames of its link."""
    chip = catalogue.load_chip("wormhole")
    link = chip.ethernet
    assert link is not None
    kinds = Counter(
        chip.tile_kinds().values()
        if callable(chip.tile_kinds)
        else (tile.kind for tile in chip.tiles.values())
    )
    most, overhead = link.frame_payload_bytes_max.value, link.frame_overhead_bytes.value

    def share(size_bytes: int) -> float:
        return 100 * size_bytes / (size_bytes + overhead * -(-size_bytes // most))

    sizes = [16 * n for n in range(1, 513)]
    program_bytes = chip.ethernet_l1_bytes.value - _core.ETHERNET_ALLOCATED_BASE
    return {
        "cores": kinds["ethernet"],
        "l1_kib": chip.ethernet_l1_bytes.value / 1024,
        "program_kib": program_bytes / 1024,
        "line_gbps": 8 * link.line_rate_gb_per_s.value,
        "all_links_gbps": 8 * link.line_rate_gb_per_s.value * kinds["ethernet"],
        "all_links_gb_per_s": 2 * link.line_rate_gb_per_s.value * kinds["ethernet"],
        "word_bytes": link.word_bytes.value,
        "frame_bytes": most,
        "overhead_bytes": overhead,
        "overhead_parts_bytes": 14 + 16 + 16 + 4,
        "share_576": [share(576), "a bfp4 tile of 576 bytes"],
        "loss_tiles": [
            max(100 - share(size) for size in (1088, 2048)),
            "tiles of 1,088 and 2,048 bytes, the larger of both losses in percent",
        ],
        "loss_1k": 100 - share(1024),
        "loss_1500": 100 - share(1500),
        "is_monotone_to_a_frame": all(
            share(a) < share(b) for a, b in zip(sizes, sizes[1:], strict=False) if b <= most
        ),
        "queues": link.tx_queues.value,
        "queues_for_kernels": link.tx_queues_for_kernels.value,
        "curve": {"x": sizes, "y": [share(size) for size in sizes]},
    }


def _linked(cluster: ChipClusterSpec, chip: int) -> list[EthernetEnd]:
    """The channels of a chip that have a link."""
    return [end for end in cluster.channels_of(chip) if cluster.connected(end) is not None]


def core_kernels() -> Result:
    """Kernels on Ethernet cores: with a link, without a link, and on the NoC."""
    free_chip, _ = free_link()[0]
    linked = {end.channel for end in _linked(catalogue.load_chip_cluster("n300"), free_chip)}
    alone = next(channel for channel in range(16) if channel not in linked)
    idle = ethernet_kernel(
        "noc_async_write(0x20000, get_noc_addr(1, 1, 0x20000), 64);" "noc_async_write_barrier();", 0
    )
    sends = ethernet_kernel("eth_send_bytes(0x20000, 0x20000, 16);", 0)
    from dataclasses import replace

    other_task = run("n300", [replace(idle, core=(0, alone))], read=[word((1, 1), 0x20000)])
    cannot_send = run("n300", [replace(sends, core=(0, alone))])
    to_the_core = core(
        "noc_async_write(0x20000, get_noc_addr(9, 0, 0x20000), 64); noc_async_write_barrier();"
    )
    compute = run(
        "wormhole",
        [
            replace(
                ethernet_kernel("", 0),
                chip=0,
                core=(0, 0),
                processor="compute",
                text='#include "api/compute/compute.h"\nvoid kernel_main() {}',
            ),
        ],
    )
    on_ethernet = run(
        "wormhole",
        [
            replace(
                ethernet_kernel("", 0),
                chip=0,
                core=(0, 8),
                text='#include "api/compute/compute.h"\nvoid kernel_main() '
                "{ tile_regs_acquire(); }",
            ),
        ],
    )
    second = run(
        "n300", [ethernet_kernel(ASKS, 0), ethernet_kernel(ASKS, 0), ethernet_kernel(ANSWERS, 1)]
    )
    larger = pair(
        ASKS + "eth_send_bytes_over_channel(0x20000, 0x20000, 8192, 1, 8192, 512);"
        "eth_wait_for_receiver_channel_done(1);",
        ANSWERS + "while (!eth_bytes_are_available_on_channel(1)) {}"
        "DPRINT << *(volatile uint32_t*)(0x20000 + 8188) << ENDL(); eth_receiver_channel_done(1);",
    )
    return {
        "is_on_the_noc": to_the_core.accepted(),
        "unlinked_works": other_task.accepted(),
        "unlinked_cannot_send": cannot_send.refused("is connected to no other core"),
        "has_no_compute": [
            compute.run is not None and on_ethernet.run is None,
            on_ethernet.error.splitlines()[0] if on_ethernet.error else "",
        ],
        "has_one_processor": [second.run is None, second.error],
        "larger_than_a_frame": [len(larger.printed) == 1, larger.error],
    }


def instruction_cache() -> Result:
    """The same calls twice: code that runs again is in the cache."""
    body = (
        "noc_async_write(0x20000, get_noc_addr(1, 1, 0x20000), 64); noc_async_write_barrier();"
        "noc_async_read(get_noc_addr(1, 1, 0x20000), 0x30000, 64); noc_async_read_barrier();"
    )
    found = run(
        "n300",
        [
            ethernet_kernel(
                f'for (int i = 0; i < 3; ++i) {{ DeviceZoneScopedN("trip"); {body} }}', 0
            )
        ],
    )
    zones = [zone.cycles for zone in found.run.zones] if found.run else [0, 0]
    return {
        "cached_is_faster": [
            zones[-1] < zones[0],
            f"{zones[0]} cycles the first time, {zones[-1]} again",
        ],
    }


def clusters() -> Result:
    """The shapes of the products, from their descriptions."""
    n300, t3000 = (catalogue.load_chip_cluster(name) for name in ("n300", "t3000"))
    line = n300.chips[0].chip.ethernet.line_rate_gb_per_s.value  # type: ignore[union-attr]
    free = [link for link in n300.links if not link.is_reserved]
    board = {0, 4}  # of t3000: chip n and n + 4 are on one board
    outer = [link for link in t3000.links if (link.one.chip in board) != (link.other.chip in board)]
    on_pcie = [number for number, placed in enumerate(t3000.chips) if placed.has_host_link]
    drawn = [load(name).draw() for name in ("n300", "t3000", "galaxy")]
    rows = {placed.y for placed in t3000.chips}, {placed.x for placed in t3000.chips}
    return {
        "n300_gbps": 8 * line * len(n300.links),
        "n300_free_gbps": 8 * line * len(free),
        "n300_reserved": len(n300.links) - len(free),
        "n300_on_pcie": [n for n, placed in enumerate(n300.chips) if placed.has_host_link] == [0],
        "board_ports": [len(outer), "links from one board of a T3000 to other boards"],
        "t3000_chips": len(t3000.chips),
        "t3000_mesh": sorted(map(len, rows)) == [2, 4],
        "t3000_on_pcie": on_pcie == [0, 1, 2, 3],
        "pictures": all("<svg" in drawing for drawing in drawn),
        "noc_picture": "<svg" in load("wormhole").draw(),
        "figure_t3000": {"title": "T3000: four boards, eight chips", "svg": drawn[1]},
        "figure_wormhole": {"title": "The tiles of a Wormhole", "svg": load("wormhole").draw()},
        **_galaxies(),
    }


def _galaxies() -> Result:
    galaxy, torus, two = (
        catalogue.load_chip_cluster(name) for name in ("galaxy", "galaxy-torus", "two-galaxies")
    )
    of_chip = [len(_linked(galaxy, chip)) for chip in range(len(galaxy.chips))]
    inner = [
        of_chip[number]
        for number, placed in enumerate(galaxy.chips)
        if 0 < placed.x < 7 and 0 < placed.y < 3
    ]
    columns = [(two.chips[link.one.chip].x, two.chips[link.other.chip].x) for link in two.links]
    across = sum((one < 8) != (other < 8) for one, other in columns)
    return {
        "galaxy_chips": len(galaxy.chips),
        "galaxy_inner_links": min(inner),
        "galaxy_edges_have_fewer": min(of_chip) < 16,
        "galaxies_join": [across > 0, f"{across} links join two Galaxies"],
        "torus": len(torus.links) > len(galaxy.links),
    }


def descriptions() -> Result:
    """The content of a cluster description file, and the errors for wrong files."""
    two = catalogue.parse_chip_cluster(_TWO_CHIPS, "two.yaml")
    placed = two.chips[1]
    try:
        catalogue.parse_chip_cluster(_FIRST_MISTAKES["link twice"], "two.yaml")
        refused = "accepted"
    except TowpathError as error:
        refused = str(error)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "two.yaml")
        file.write_text(_TWO_CHIPS, encoding="utf-8")
        two_chips: Any = load(str(file))
        gathered = two_chips.run("all_gather", size_bytes="64K")
    return {
        "location": [
            (placed.x, placed.y, placed.rack, placed.shelf) == (1, 0, 0, 0),
            "x, y, rack and shelf of each chip",
        ],
        "pcie": [two.chips[0].has_host_link and not placed.has_host_link, "chips on PCIe"],
        "links": [
            str(two.links[0].one) == "0/8" and gathered.wrong == 0,
            "chip and channel of both ends; all_gather over the link has right data",
        ],
        "one_link_per_core": ["accepted" != refused, refused],
    }


def collectives() -> Result:
    """Data between chips without host, switch and adapter. Link faults under it."""
    t3000: Any = load("t3000")
    gathered = t3000.run("all_gather", size_bytes="1M")
    faulty = t3000.run(
        "all_reduce",
        size_bytes="256K",
        algorithm=None,
        protocol="Simple",
        link_faults=("0:9,at=16us,every=100us,training=5us",),
    )
    cost = faulty.rows[0].fault_cost
    drops = sum(link.drops for link in cost.links) if cost else 0
    return {
        "direct": [gathered.wrong == 0, "8 chips, only Ethernet links between them"],
        "all_gather": [gathered.wrong == 0, f"1 MiB in {gathered.rows[0].time_us:.1f} us"],
        "retrained": [faulty.wrong == 0 and drops > 0, f"{drops} drops, 0 wrong"],
    }


def aggregate() -> Result:
    """16 links of one chip at once: kernels of its Ethernet cores send as fast as they can."""
    galaxy = catalogue.load_chip_cluster("galaxy")
    center = next(n for n, placed in enumerate(galaxy.chips) if len(_linked(galaxy, n)) == 16)
    messages, size = 64, 8192
    send = (
        ASKS + f"for (int i = 0; i < {messages}; ++i) {{ while (eth_txq_is_busy()) {{}}"
        f"eth_send_packet(0, 0x20000 >> 4, 0x20000 >> 4, {size} >> 4); }}"
        "eth_send_bytes_over_channel(0x20000, 0x20000, 16, 1);"
        "eth_wait_for_receiver_channel_done(1);"
    )
    receive = (
        ANSWERS + "while (!eth_bytes_are_available_on_channel(1)) {} eth_receiver_channel_done(1);"
    )
    from dataclasses import replace

    kernels = []
    for end in _linked(galaxy, center):
        far = galaxy.connected(end)
        assert far is not None
        kernels.append(replace(ethernet_kernel(send, 0), chip=end.chip, core=(0, end.channel)))
        kernels.append(replace(ethernet_kernel(receive, 1), chip=far.chip, core=(0, far.channel)))
    found = run("galaxy", kernels, cycles_max=10_000_000, finds_hazards=False)
    if found.run is None:
        return {"failed": found.error}
    total = 16 * messages * size / found.run.time_ns
    return {"one_way_gb_per_s": [total, "with handshakes and ends"]}


def routes() -> Result:
    """The document's four routes round a ring of four chips, in two orders."""
    from towpath.studies.static_routes import plan_routes

    ring = catalogue.parse_chip_cluster(
        "form: chip_cluster\nname: ring\ndescription: four chips\nsource: chosen\nchips:\n"
        + "".join(
            f"  - {{chip: wormhole, x: {x}, y: {y}}}\n" for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))
        )
        + "links: [[0/0, 1/1], [1/0, 2/1], [2/0, 3/1], [3/0, 0/1]]\n",
        "ring.yaml",
    )
    planned = plan_routes(ring, [[0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 0, 1]], packet_bytes=4096)
    interleaved = _core.route_over_links(ring.build(), [[0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 0, 1]])
    given, best = planned.given, planned.best
    assert given.time_us is not None and best.time_us is not None
    return {
        "given_timesteps": given.timesteps,
        "best_timesteps": best.timesteps,
        "half": [best.timesteps / given.timesteps, f"{given.timesteps} and {best.timesteps}"],
        "time_ratio": [
            best.time_us / given.time_us,
            f"{given.time_us:.2f} and {best.time_us:.2f} us for 4 KiB as kernels",
        ],
        "commands_per_hop": [
            all(
                sum(len(found) for found in each.commands.values()) == 16 for each in (given, best)
            ),
            "8 hops, a send and a receive each",
        ],
        "whole_routes_do_not_deadlock": [
            given.timesteps > 0 and len(interleaved) == 4,
            "one buffer per core, both orders end",
        ],
        "table": [given.table() != best.table(), best.table()],
    }


def numbering() -> Result:
    """Logical numbers of Ethernet cores, as an architecture file lists them."""
    import yaml

    from towpath.specs.export import soc_descriptor_of

    wormhole = catalogue.load_chip("wormhole")
    listed = yaml.safe_load(soc_descriptor_of(wormhole))
    t3000 = catalogue.load_chip_cluster("t3000")
    used = {frozenset(end.channel for end in _linked(t3000, chip)) for chip in range(8)}
    third = t3000.core_of(EthernetEnd(0, 2))
    return {
        "label": ["eth" in listed and len(listed["eth"]) == 16, f"{listed.get('eth')}"],
        "third_core": [third == (8, 0), f"channel 2 is core {third}"],
        "cores_differ": [len(used) > 1, f"{len(used)} sets of linked channels on a T3000"],
    }
