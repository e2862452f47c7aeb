# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A host with chips, and the folder of its driver."""

from towpath.host import host_cluster
from towpath.host.driver_folder import simulated_time_ns, write_driver_folder
