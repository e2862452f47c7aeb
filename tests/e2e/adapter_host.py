# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A host whose topology is right and whose adapter states may be spoilt; mutate.py calls `load`."""

from inside.machines import import_host, read_text

TOPOLOGY = """\
        GPU0    GPU1    NIC0    NIC1    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV18    PIX     PXB     0-55,112-167    0               N/A
GPU1    NV18     X      PXB     PIX     0-55,112-167    0               N/A
NIC0    PIX     PXB      X      PXB
NIC1    PXB     PIX     PXB      X

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""


def load(path):
    """The host with the adapter states in a file, built for two hosts."""
    spec = import_host([(TOPOLOGY, str(path)), (read_text(path), str(path))])
    return spec.sized(hosts=2).layout()
