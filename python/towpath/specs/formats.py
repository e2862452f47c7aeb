# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Recognizes texts from other tools by their appearance. The modules in importers/ parse these
texts.
"""

from __future__ import annotations

import re

from towpath.specs.input_file import YamlDocument

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_FIRST_ROW = re.compile(r"(?m)^[ \t]*GPU[0-9]{1,4}[ \t]")


def is_xml(text: str) -> bool:
    """True if a text claims to be XML."""
    return text.lstrip().startswith("<")


def is_topology_table(text: str) -> bool:
    """True if a text resembles the output of `nvidia-smi topo -m`."""
    return "GPU" in text and _FIRST_ROW.search(COLOURS.sub("", text)) is not None


def is_soc_descriptor(document: YamlDocument) -> bool:
    """True if a document resembles a SoC descriptor."""
    return isinstance(document.data, dict) and "functional_workers" in document.data


def is_cluster_descriptor(document: YamlDocument) -> bool:
    """True if a document resembles a cluster descriptor."""
    return isinstance(document.data, dict) and "ethernet_connections" in document.data
