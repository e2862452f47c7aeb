# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 000: cores, links and clusters, read from the described machines and their runs."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from itertools import pairwise, permutations
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
_LINK_TWICE = _TWO_CHIPS.replace("[[0/8, 1/0]]", "[[0/8, 1/0], [0/8, 1/1]]")
_ROUTES = [[0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 0, 1]]


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

    sizes = [16 * n for n in range(1, most // 16 + 1)]
    program_bytes = chip.ethernet_l1_bytes.value - _core.ETHERNET_ALLOCATED_BASE
    return {
        "cores": kinds["ethernet"],
        "l1_kib": chip.ethernet_l1_bytes.value / 1024,
        "program_kib": program_bytes / 1024,
        "line_gbps": 8 * link.line_rate_gb_per_s.value,
        "word_bytes": link.word_bytes.value,
        "frame_bytes": most,
        "overhead_bytes": overhead,
        "share_576": [share(576), "a bfp4 tile of 576 bytes"],
        "loss_tiles": [
            max(100 - share(size) for size in (1088, 2048)),
            "tiles of 1,088 and 2,048 bytes, the larger of both losses in percent",
        ],
        "loss_above_1k": _largest_loss({size: share(size) for size in range(1024, 8193, 16)}),
        "rises_to_a_frame": [
            all(one < next_one for one, next_one in pairwise(map(share, sizes))),
            f"{share(16):.1f} % of the line with 16 B, {share(sizes[-1]):.1f} % with {sizes[-1]} B",
        ],
        "queues": link.tx_queues.value,
    }


def _largest_loss(shares: dict[int, float]) -> list[Any]:
    """The largest loss of the line over payloads, in percent."""
    size, share = min(shares.items(), key=lambda each: each[1])
    return [100 - share, f"{size} B; the least is {100 - max(shares.values()):.1f} %"]


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
    return {
        "is_on_the_noc": to_the_core.accepted(),
        "unlinked_works": other_task.accepted(),
        "unlinked_cannot_send": cannot_send.refused("is connected to no other core"),
        "has_no_compute": [
            compute.run is not None and "api/compute/" in on_ethernet.error,
            on_ethernet.error,
        ],
        "has_one_processor": second.refused("which can run only one kernel"),
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
    # Chips n and n + 4 of a T3000 are on one board.
    outer = Counter(
        end.chip % 4
        for link in t3000.links
        if link.one.chip % 4 != link.other.chip % 4
        for end in (link.one, link.other)
    )
    on_pcie = [number for number, placed in enumerate(t3000.chips) if placed.has_host_link]
    drawn = {name: load(name).draw() for name in ("n300", "t3000", "galaxy", "wormhole")}
    rows = {placed.y for placed in t3000.chips}, {placed.x for placed in t3000.chips}
    return {
        "n300_free_gbps": 8 * line * len(free),
        "n300_on_pcie": [n for n, placed in enumerate(n300.chips) if placed.has_host_link] == [0],
        "board_ports": [
            max(outer.values()),
            f"links from each board of a T3000 to other boards: {dict(sorted(outer.items()))}",
        ],
        "t3000_mesh": [
            sorted(map(len, rows)) == [2, 4] and on_pcie == [0, 1, 2, 3],
            f"{len(t3000.chips)} chips, on PCIe {on_pcie}",
        ],
        "noc_picture": _drawn_tiles(drawn["wormhole"]),
        "pictures": _drawn_clusters(drawn),
        "figure_t3000": {"title": "T3000: four boards, eight chips", "svg": drawn["t3000"]},
        "figure_wormhole": {"title": "The tiles of a Wormhole", "svg": drawn["wormhole"]},
        **_galaxies(),
    }


def _drawn_tiles(drawing: str) -> list[Any]:
    """True if the drawing of a Wormhole has all of its 10 x 12 tiles, 16 of them for Ethernet."""
    titles = re.findall(r"<title>[0-9]+-[0-9]+: ([a-z]+)", drawing)
    kinds = Counter(titles)
    return [len(titles) == 120 and kinds["ethernet"] == 16, f"{len(titles)} tiles: {dict(kinds)}"]


def _drawn_clusters(drawn: dict[str, str]) -> list[Any]:
    """True if the drawings of n300, T3000 and Galaxy have each chip and each link once."""
    found, wanted = {}, {}
    for name in ("n300", "t3000", "galaxy"):
        cluster = catalogue.load_chip_cluster(name)
        chips = re.findall(r"<title>chip [0-9]+: wormhole", drawn[name])
        links = re.findall(r"<title>[0-9]+ E[0-9]+: joined to", drawn[name])
        found[name] = len(chips), len(links)
        wanted[name] = len(cluster.chips), len(cluster.links)
    return [found == wanted, f"chips and links: {found}"]


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
        "galaxies_join": [
            len(galaxy.chips) == 32 and min(inner) == 16 and min(of_chip) < 16 and across > 0,
            f"inner chips have {min(inner)} links, corners {min(of_chip)}; {across} links join two",
        ],
        "mesh_or_torus": [
            len(torus.links) > len(galaxy.links) and len(torus.chips) == len(galaxy.chips),
            f"{len(galaxy.links)} links in the mesh, {len(torus.links)} in the torus",
        ],
    }


def descriptions() -> Result:
    """The content of a cluster description file, and the errors for wrong files."""
    two = catalogue.parse_chip_cluster(_TWO_CHIPS, "two.yaml")
    placed = two.chips[1]
    try:
        catalogue.parse_chip_cluster(_LINK_TWICE, "two.yaml")
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
        "one_link_per_core": ["a channel can have only one" in refused, refused],
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
        "direct": [
            gathered.wrong == 0,
            f"8 chips with only Ethernet links between them gather 1 MiB each in "
            f"{gathered.rows[0].time_us:.1f} us",
        ],
        "retrained": [faulty.wrong == 0 and drops > 0, f"{drops} drops, 0 wrong"],
    }


def shapes() -> Result:
    """All-gathers over a line, a ring, a mesh and a torus of the same chip."""
    wrong = {}
    for name in ("n300", "t3000", "galaxy", "galaxy-torus"):
        machine: Any = load(name)
        wrong[name] = machine.run("all_gather", size_bytes="4K").wrong
    return {"right": [not any(wrong.values()), ", ".join(f"{n} {w}" for n, w in wrong.items())]}


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


def _interleaved_routes_deadlock(ring: ChipClusterSpec) -> list[Any]:
    """True if routes that are added whole end in every order, and the same hop by hop do not."""
    routes = _core.route_over_links(ring.build(), _ROUTES)
    buffers = 1
    whole = [
        _core.execute_routes(routes, _core.commands_in_order(routes, list(order)), buffers)[1]
        for order in permutations(range(len(routes)))
    ]
    lists = _core.commands_in_order(routes, list(range(len(routes))))
    # The first hops of all routes, and only then the second ones.
    by_hop = [
        _core.CoreCommands(one.core, sorted(one.commands, key=lambda command: command.hop))
        for one in lists
    ]
    by_hops = _core.execute_routes(routes, by_hop, buffers)[1]
    return [
        not any(whole) and bool(by_hops),
        f"{len(whole)} orders of whole routes end; hop by hop: {by_hops}",
    ]


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
    planned = plan_routes(ring, _ROUTES, packet_bytes=4096)
    given, best = planned.given, planned.best
    assert given.time_us is not None and best.time_us is not None
    return {
        "given_timesteps": given.timesteps,
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
        "whole_routes_do_not_deadlock": _interleaved_routes_deadlock(ring),
        "table": [
            all(len({route for _, _, route, _ in listed}) > 1 for listed in best.commands.values()),
            best.table(),
        ],
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
