# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules written for one machine: the limits of its links, and trees and rings that divide the
load among them.
"""
