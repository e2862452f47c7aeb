// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The place of this process among the processes that a launcher has started.

namespace towpath::virtual_gpu {

struct Place {
  int rank, size;
  int host, hosts;  // of the described machine
};

// Launchers number the processes of a host consecutively, so that a rank gives the host. The number
// of hosts is $TOWPATH_HOSTS. Without a launcher, the process is the only one.
const Place& place_of_process();

}  // namespace towpath::virtual_gpu
