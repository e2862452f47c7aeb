# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Moves data between processors: for real, or simulated on a machine that is only described."""
