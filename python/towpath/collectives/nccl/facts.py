# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What NCCL's cost model has to know of a machine of Towpath."""

from __future__ import annotations

from towpath.collectives.nccl.communicator import Communicator, Graph, Path, Pattern


def hgx_h100(nodes: int) -> Communicator:
    """Nodes of 8 H100 on an NVSwitch with an adapter of 400 Gb/s each, on Intel hosts: what NCCL's
    search finds there."""
    nvl = Path.NVL
    if nodes == 1:
        graphs = {
            "ring": Graph(Pattern.RING, 12, 30.0, 30.0, nvl),
            "tree": Graph(Pattern.BALANCED_TREE, 12, 30.0, 30.0, nvl),
            "nvls": Graph(Pattern.NVLS, 8, 40.0, 60.0, nvl),
        }
    else:
        graphs = {
            "ring": Graph(Pattern.RING, 8, 48.0, 48.0, nvl, cross_nic=2),
            "tree": Graph(Pattern.BALANCED_TREE, 8, 48.0, 48.0, nvl),
            "nvls": Graph(Pattern.NVLS, 8, 40.0, 48.0, nvl),
        }
    return Communicator(
        ranks=8 * nodes,
        nodes=nodes,
        generation="hopper",
        cpu="intel",
        graphs=graphs,
        channels=24 if nodes == 1 else 16,
        nvls_channels=16,
        has_nvswitch=True,
        adapter_gb_per_s=50.0,
    )
