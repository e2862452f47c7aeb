# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Converts other tools' descriptions of a host's topology to a machine spec."""
