# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules written for one machine: what its links allow, trees and rings that share them out."""
