# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Private names for tests of `towpath doctor`."""

from towpath.api.doctor import diagnose

__all__ = ["diagnose"]
