# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Errors that are not part of the public door."""

from towpath.errors import DescriptionError, Interruption
