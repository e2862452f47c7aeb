// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NVSHMEM's names that Towpath does not have; using one ends the compilation with the reason.

#define TOWPATH_REFUSED(name, reason)                            \
  template <typename... Arguments>                               \
  int name(Arguments...) {                                       \
    static_assert(sizeof...(Arguments) > 1000, #name ": " reason); \
    return 0;                                                    \
  }

#define TOWPATH_NO_MULTICAST "Towpath has no multicast addresses; put to each peer"
#define TOWPATH_NO_MPI "MPI is absent; begin with nvshmem_init or a unique id"
#define TOWPATH_NO_MAPPING "memory of others cannot join the symmetric heap; use nvshmem_malloc"
#define TOWPATH_NO_QUEUE_PAIRS \
  "queue pairs are the machine's, not the program's; leave out qp, and set queue_pairs of the machine"
#define TOWPATH_NO_COUNTING "signals that count bytes are not there; use nvshmemx_putmem_signal_block"

TOWPATH_REFUSED(nvshmemx_mc_ptr, TOWPATH_NO_MULTICAST)
TOWPATH_REFUSED(nvshmemx_set_attr_mpi_comm_args, TOWPATH_NO_MPI)
TOWPATH_REFUSED(nvshmemx_buffer_register_symmetric, TOWPATH_NO_MAPPING)
TOWPATH_REFUSED(nvshmemx_buffer_register_symmetric_at_preferred_address, TOWPATH_NO_MAPPING)
TOWPATH_REFUSED(nvshmemx_buffer_unregister_symmetric, TOWPATH_NO_MAPPING)
TOWPATH_REFUSED(nvshmemx_qp_create, TOWPATH_NO_QUEUE_PAIRS)
TOWPATH_REFUSED(nvshmemx_qp_signal_op, TOWPATH_NO_QUEUE_PAIRS)
TOWPATH_REFUSED(nvshmemx_qp_quiet, TOWPATH_NO_QUEUE_PAIRS)
TOWPATH_REFUSED(nvshmemx_qp_fence, TOWPATH_NO_QUEUE_PAIRS)
TOWPATH_REFUSED(nvshmemx_signal_counted_reset, TOWPATH_NO_COUNTING)
