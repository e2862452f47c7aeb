# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Which other tool a text is from, by its look. The modules that read such texts are importers/."""

from __future__ import annotations

import re

from towpath.specs.input_file import YamlDocument

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_FIRST_ROW = re.compile(r"(?m)^[ \t]*GPU[0-9]{1,4}[ \t]")


def is_xml(text: str) -> bool:
    """Whether a text claims to be XML."""
    return text.lstrip().startswith("<")


def is_topology_table(text: str) -> bool:
    """Whether a text looks like the output of `nvidia-smi topo -m`."""
    return _FIRST_ROW.search(COLOURS.sub("", text)) is not None


def is_soc_descriptor(document: YamlDocument) -> bool:
    """Whether a document looks like a SoC descriptor."""
    return isinstance(document.data, dict) and "functional_workers" in document.data


def is_cluster_descriptor(document: YamlDocument) -> bool:
    """Whether a document looks like a cluster descriptor."""
    return isinstance(document.data, dict) and "ethernet_connections" in document.data
