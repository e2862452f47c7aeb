# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's graph files, which NCCL_GRAPH_DUMP_FILE writes and NCCL_GRAPH_FILE reads.

A file has <graphs> with a <graph> per kind of algorithm, by its id. Each has the attributes of the
search and a <channel> per path, with its <net>s and <gpu>s in path order (src/graph/search.cc,
NVIDIA/nccl, commit 5067397c). A GPU is identified by `dev`, its number in the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import quoteattr

from towpath.collectives.nccl.communicator import CHANNELS_MAX, Channel, Graph, Path, Pattern
from towpath.errors import ConfigError, quoted
from towpath.specs.input_file import read_text
from towpath.specs.xml_file import XmlElement, parse_xml

_CHILDREN = {"graphs": ("graph",), "graph": ("channel",), "channel": ("gpu", "net")}
# By id, as src/init.cc numbers them. The names are those of `Communicator.graphs`.
_NAMES = {0: "ring", 1: "tree", 2: "collnet_chain", 3: "nvls", 4: "collnet_direct"}
_PATHS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
_GPU_MAX = 4095
_NET_MAX = (1 << 62) - 1
_NETS_MAX = 2
_RATE_MAX = 10_000.0
_LATENCY_MAX_US = 1e6


def load_graphs(file: str) -> dict[str, Graph]:
    """The graphs of a file, by the names of `Communicator.graphs`.

    Raises:
        ConfigError: the file cannot be read, or its content is wrong.
    """
    return parse_graphs(read_text(file), file)


def parse_graphs(text: str, file: str) -> dict[str, Graph]:
    """The graphs of a text, by the names of `Communicator.graphs`. Graphs without channels are left
    out: NCCL searches for them.

    Args:
        text: the file's content.
        file: name of the file, for errors.

    Raises:
        ConfigError: the content is wrong.
    """
    root = parse_xml(text, file)
    if root.tag != "graphs":
        raise root.error("is not the start of an NCCL graph file; it must be <graphs>")
    root.check_children(_CHILDREN)
    version = root.attributes.get("version", "1")
    if version != "1":
        raise root.error(f"has version={quoted(version)}; it must be 1")
    graphs: dict[str, Graph] = {}
    for element in root.children:
        number = element.integer("id", 0, 1023)
        if number not in _NAMES:
            allowed = ", ".join(f"{one} ({name})" for one, name in _NAMES.items())
            raise element.error(f"has id={number}; it must be one of {allowed}")
        name = _NAMES[number]
        if name in graphs:
            raise element.error(f"has the id of another <graph>, {number}")
        graph = _graph(element, name)
        if graph.channels:
            graphs[name] = graph
    return graphs


def graphs_text(graphs: Mapping[str, Graph]) -> str:
    """The text of a graph file, which NCCL reads with NCCL_GRAPH_FILE on every node.

    Args:
        graphs: the graphs by the names of `Communicator.graphs`.
    """
    lines = ['<graphs version="1">']
    for number, name in _NAMES.items():
        graph = graphs.get(name)
        if graph is not None:
            lines += _graph_lines(number, graph)
    return "\n".join([*lines, "</graphs>", ""])


def _graph_lines(number: int, graph: Graph) -> list[str]:
    attributes = {
        "id": number,
        "pattern": int(graph.pattern),
        "crossnic": graph.cross_nic,
        "nchannels": graph.channel_count,
        "speedintra": f"{graph.intra_gb_per_s:g}",
        "speedinter": f"{graph.inter_gb_per_s:g}",
        "latencyinter": f"{graph.latency_us:g}",
        "typeintra": graph.intra_path.name,
        "typeinter": graph.inter_path.name,
        "samechannels": int(graph.same_channels),
    }
    joined = " ".join(f"{name}={quoteattr(str(value))}" for name, value in attributes.items())
    lines = [f"  <graph {joined}>"]
    for channel in graph.channels:
        lines.append("    <channel>")
        lines += [f'      <net dev="{net}"/>' for net in channel.nets[:1]]
        lines += [f'      <gpu dev="{gpu}"/>' for gpu in channel.gpus]
        lines += [f'      <net dev="{net}"/>' for net in channel.nets[1:]]
        lines.append("    </channel>")
    return [*lines, "  </graph>"]


def _graph(element: XmlElement, name: str) -> Graph:
    count = element.integer("nchannels", 0, CHANNELS_MAX)
    if count != len(element.children):
        raise element.error(f"has nchannels={count} but contains {len(element.children)} channels")
    pattern = element.integer("pattern", 1, max(Pattern))
    intra = _rate(element, "speedintra")
    return Graph(
        pattern=Pattern(pattern),
        channel_count=count,
        intra_gb_per_s=intra,
        inter_gb_per_s=_rate(element, "speedinter"),
        intra_path=_path(element, "typeintra"),
        inter_path=_path(element, "typeinter", default="PIX"),
        latency_us=_number(element, "latencyinter", _LATENCY_MAX_US, "0"),
        cross_nic=element.integer("crossnic", 0, 2, default=0),
        same_channels=element.integer("samechannels", 0, 1, default=0) == 1,
        channels=tuple(_channel(child, name) for child in element.children),
    )


def _channel(element: XmlElement, name: str) -> Channel:
    gpus: list[int] = []
    nets: list[int] = []
    for child in element.children:
        if child.tag == "net":
            nets.append(child.integer("dev", 0, _NET_MAX))
            continue
        number = child.integer("dev", 0, _GPU_MAX)
        if number in gpus:
            raise child.error(f"lists GPU {number} twice in one channel")
        gpus.append(number)
    if not gpus:
        raise element.error(f"has no <gpu>; a channel of the {name} graph must pass each GPU")
    if len(nets) > _NETS_MAX:
        raise element.error(f"has {len(nets)} <net>s; a channel must enter by one and leave by one")
    return Channel(tuple(gpus), tuple(nets))


def _path(element: XmlElement, attribute: str, default: str | None = None) -> Path:
    text = element.attributes.get(attribute, default)
    if text is None or text not in _PATHS:
        allowed = ", ".join(_PATHS)
        raise element.error(f"has {attribute}={quoted(text or '')}; it must be one of {allowed}")
    return Path[text]


def _rate(element: XmlElement, attribute: str) -> float:
    """Rate in GB/s; NCCL omits a rate of 0."""
    return _number(element, attribute, _RATE_MAX, "0")


def _number(element: XmlElement, attribute: str, most: float, default: str) -> float:
    text = element.attributes.get(attribute, default)
    try:
        value = float(text) if text.isascii() and len(text) <= 32 and "_" not in text else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise element.error(f"has {attribute}={quoted(text)}; it must be 0 to {most:g}")
    return value


def check_gpus(graphs: Mapping[str, Graph], gpus: int, file: str) -> None:
    """Checks that the channels of rings and trees pass each GPU of a node once.

    Raises:
        ConfigError: one of them does not.
    """
    for name, graph in graphs.items():
        for number, channel in enumerate(graph.channels):
            is_path = name in ("ring", "tree", "collnet_chain")
            if max(channel.gpus) >= gpus or (is_path and len(channel.gpus) != gpus):
                order = ", ".join(map(str, channel.gpus[:16]))
                raise ConfigError(
                    f"channel {number} of the {name} graph passes the GPUs {order}; the machine "
                    f"has 0 to {gpus - 1} in each host",
                    file=file,
                )
