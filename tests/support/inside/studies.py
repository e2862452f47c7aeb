# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The studies of Ethernet, PCIe, exchange and penny, and static routes."""

from towpath.studies import ethernet_study, exchange, pcie_study, penny
from towpath.studies.ethernet_study import plot
from towpath.studies.exchange import DOCUMENT, INITIATED, INSIDE, PROXY, STAGES
from towpath.studies.pcie_document import MB, TABLES
from towpath.studies.pcie_study import Cause, PcieBench, Way
from towpath.studies.static_routes import parse_routes, plan_routes
