# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What files say: machines, chips, clusters, hosts, and the formats they are imported from."""
