# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A file of an operator that may be spoilt. mutate.py calls `load`."""

from inside.operators import diagnose


def load(path):
    """The answer about one file."""
    return diagnose([path])
