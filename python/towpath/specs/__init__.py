# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Descriptions in files: machines, chips, clusters, hosts, and the formats for import."""
