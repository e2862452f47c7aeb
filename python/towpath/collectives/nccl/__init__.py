# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Prediction of NCCL on a machine: its search for channels, its cost model, its choice."""
