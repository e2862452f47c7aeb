# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The study of mailboxes: live, simulated and from the hardware description."""

from towpath.studies.mailbox_live import LiveRequest, live_tables, measure_live, parse_cores
from towpath.studies.mailbox_peers import peer_measurements
from towpath.studies.mailbox_rtl import RtlRun, Signals, check_built, iteration_cycles, run_rtl
from towpath.studies.mailbox_study import StudyRequest, measure_latency, measure_study, settled_ns
