# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Finds unusual facts in cluster descriptors of Tenstorrent's drivers."""

from __future__ import annotations

from towpath.groups import joined
from towpath.operators.finding import Finding
from towpath.operators.observed import Document, Observed
from towpath.specs.importers.cluster_descriptor import parse_cluster_descriptor
from towpath.specs.input_file import parse_yaml

NAME = "cluster descriptor"


def recognizes(document: Document) -> bool:
    """True if a document is a cluster descriptor."""
    return "ethernet_connections:" in document.text and "\narch:" in "\n" + document.text


def read(document: Document) -> Observed:
    """Reads a descriptor, and finds groups of chips that no link joins.

    Raises:
        ConfigError: its content is wrong.
    """
    spec = parse_cluster_descriptor(parse_yaml(document.text, document.file), document.file)
    found = Observed(formats=[NAME])
    found.facts["chips"] = str(len(spec.chips))
    links = [(link.one.chip, link.other.chip) for link in spec.links]
    groups = joined(range(len(spec.chips)), links)
    if len(groups) > 1:
        shown = ", ".join("{" + ", ".join(map(str, group)) + "}" for group in groups[:16])
        number, line = next(
            each for each in document.lines() if each[1].startswith("ethernet_connections:")
        )
        sentence = f"the chips are {len(groups)} groups that no link joins: {shown}"
        found.findings.append(
            Finding("unconnected", sentence, (document.evidence(number, line),), 0.95)
        )
    return found
