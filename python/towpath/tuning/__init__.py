# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The fastest way to perform an operation, found by measuring candidates."""
