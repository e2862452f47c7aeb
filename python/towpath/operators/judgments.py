# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Thresholds that no measurement gives. Each is a judgment about normal differences.

They are wide on purpose: a healthy job must not be accused. `docs/doctor.md` lists them for users.
The error of the model is not here, because it is measured (validation/accuracy.json).
"""

# Clusters of one kind differ by this much among themselves: cables, clocks, tuning. An error of the
# model below it does not make the pass mark stricter.
SPREAD_PCT = 20.0
# An error of the model above it does not make the pass mark milder: a time ten times as long as
# expected is slow on any machine.
ERROR_MAX_PCT = 90.0
# A time is slow beyond the error of the model and this factor, by least size in bytes. The time of
# a small message depends on the host, its operating system and its processes.
SLACK = ((16 << 20, 1.3), (1 << 20, 2.0), (0, 5.5))
# A job is unusually fast beyond the error of the model and this factor.
FAST_SLACK = 1.15
# Below this share of the expected bandwidth, TCP sockets are the first possibility: 25 Gb/s of
# Ethernet for a host with eight adapters of 400 Gb/s is less than a hundredth.
SOCKET_SHARE = 0.2
# A link is slow below this share of the rate of most links of its kind in NCCL's model.
SLOW_LINK_SHARE = 0.6
# A PCIe link of a GPU below this rate in NCCL's model has at most two lanes of the third generation
# (1.5 GB/s there), and four lanes (3 GB/s) are above it. NCCL prints 0.2 for bridges that virtual
# machines invent.
PCIE_MIN_GB_PER_S = 2.0
# A port far below the fastest port is a management port, not a rail that lost lanes.
MANAGEMENT_PORT_SHARE = 0.125
# A rank is late if it is last in this share of at least this many calls, and the remaining ranks
# take this many times as long because they wait.
LATE_SHARE, LATE_CALLS_MIN, LATE_RATIO = 0.6, 5, 1.5
