# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's own decisions on a described machine: its source, built for virtual GPUs."""
