# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Files of operators: logs, traces and topologies, and the causes of slow or hanging jobs."""
