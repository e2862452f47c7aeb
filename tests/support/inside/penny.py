# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The library of the penny collectives, which needs torch."""

from towpath.penny.library import checked_call
