# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""All-reduce by kernels of puts with signals: `penny.all_reduce(tensor)`.

The CUDA kernels of `penny/` reduce the tensors. For CPU tensors they are compiled for this host and
run between its processes. For GPU tensors nvcc compiles them.

>>> import torch.distributed as dist
>>> from towpath import penny
>>> dist.init_process_group("gloo")                                   # doctest: +SKIP
>>> penny.all_reduce(tensor)                                          # doctest: +SKIP
"""

from __future__ import annotations

from towpath.errors import ConfigError

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ConfigError("towpath.penny needs PyTorch; pip install 'towpath[torch]'") from error

from towpath.penny.group import ALGORITHMS, all_reduce, begin, empty, end

__all__ = ["ALGORITHMS", "all_reduce", "begin", "empty", "end"]
