// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NVSHMEM's extensions: initialization by a unique id, registered buffers, calls by warps, blocks
// and on streams, collective launches.

#include "nvshmem.h"

enum {
  NVSHMEMX_INIT_THREAD_PES = 1,
  NVSHMEMX_INIT_WITH_MPI_COMM = 1 << 1,
  NVSHMEMX_INIT_WITH_SHMEM = 1 << 2,
  NVSHMEMX_INIT_WITH_UNIQUEID = 1 << 3,
};
enum { NVSHMEMX_SUCCESS = 0, NVSHMEMX_ERROR_INVALID_VALUE = 1, NVSHMEMX_ERROR_NOT_SUPPORTED = 4 };

struct nvshmemx_uniqueid_t {
  int version;
  char internal[124];
};
struct nvshmemx_init_attr_t {
  int version;
  int rank, ranks;
  const void* mpi_comm;
};
#define NVSHMEMX_INIT_ATTR_INITIALIZER {1, -1, -1, nullptr}
#define NVSHMEMX_UNIQUEID_INITIALIZER {1, {}}

// --- beginning --------------------------------------------------------------------------------
static inline int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* id) {
  *id = NVSHMEMX_UNIQUEID_INITIALIZER;
  return NVSHMEMX_SUCCESS;
}
static inline int nvshmemx_set_attr_uniqueid_args(const int rank, const int ranks,
                                                  const nvshmemx_uniqueid_t*,
                                                  nvshmemx_init_attr_t* attributes) {
  *attributes = {1, rank, ranks, nullptr};
  return NVSHMEMX_SUCCESS;
}
static inline int nvshmemx_init_attr(unsigned flags, nvshmemx_init_attr_t* attributes,
                                     TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmemx_init_attr");
  if ((flags & (NVSHMEMX_INIT_WITH_MPI_COMM | NVSHMEMX_INIT_WITH_SHMEM)) != 0) {
    TOWPATH_CALL(fail, "only a unique id, or nothing, can begin NVSHMEM here: MPI is absent",
                 &towpath_site);
  }
  const bool is_given = attributes != nullptr && (flags & NVSHMEMX_INIT_WITH_UNIQUEID) != 0;
  TOWPATH_CALL(initialize, is_given ? attributes->rank : -1, is_given ? attributes->ranks : -1,
               &towpath_site);
  towpath_gpu::define_teams();
  return NVSHMEMX_SUCCESS;
}
static inline int nvshmemx_hostlib_init_attr(unsigned flags, nvshmemx_init_attr_t* attributes,
                                             TOWPATH_SITE) {
  return nvshmemx_init_attr(flags, attributes, TOWPATH_SITE_ARGUMENTS);
}
static inline void nvshmemx_hostlib_finalize() { nvshmem_finalize(); }
// 2: the device is ready.
static inline int nvshmemx_init_status() { return 2; }
static inline void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
  *major = NVSHMEM_VENDOR_MAJOR_VERSION;
  *minor = NVSHMEM_VENDOR_MINOR_VERSION;
  *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}
static inline int nvshmemx_cumodule_init(CUmodule) { return NVSHMEMX_SUCCESS; }
static inline int nvshmemx_cumodule_finalize(CUmodule) { return NVSHMEMX_SUCCESS; }
static inline int nvshmemx_culibrary_init(CUlibrary) { return NVSHMEMX_SUCCESS; }
static inline int nvshmemx_culibrary_finalize(CUlibrary) { return NVSHMEMX_SUCCESS; }

static inline int nvshmemx_my_pe(nvshmem_team_t team) { return nvshmem_team_my_pe(team); }
static inline int nvshmemx_n_pes(nvshmem_team_t team) { return nvshmem_team_n_pes(team); }

// --- buffers and launches ---------------------------------------------------------------------
static inline int nvshmemx_buffer_register(void* address, size_t length) {
  return TOWPATH_CALL(register_buffer, address, length);
}
static inline int nvshmemx_buffer_unregister(void* address, TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmemx_buffer_unregister");
  return TOWPATH_CALL(unregister_buffer, address, false, &towpath_site);
}
static inline void nvshmemx_buffer_unregister_all(TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmemx_buffer_unregister_all");
  TOWPATH_CALL(unregister_buffer, nullptr, true, &towpath_site);
}
static inline int nvshmemx_collective_launch(const void* function, dim3 grid, dim3 block,
                                             void** arguments, size_t shared,
                                             cudaStream_t stream) {
  const towpath_gpu::LaunchConfiguration configuration(grid, block, shared, stream);
  return TOWPATH_CALL(launch_by_address, function, &configuration, arguments, true);
}
static inline int nvshmemx_collective_launch_query_gridsize(const void*, dim3 block, void**,
                                                            size_t shared, int* blocks) {
  *blocks = TOWPATH_CALL(resident_blocks, block.x * block.y * block.z, shared);
  return NVSHMEMX_SUCCESS;
}

// --- put and get by warps and blocks ------------------------------------------------------------
#define TOWPATH_TYPED_BY_GROUPS(name, type)                                                       \
  TOWPATH_TRANSFERS(nvshmemx, name##_, , _warp, type, warp, sizeof(type))                         \
  TOWPATH_TRANSFERS(nvshmemx, name##_, , _block, type, block, sizeof(type))                       \
  TOWPATH_STRIDED(nvshmemx, name, _warp, type, warp)                                              \
  TOWPATH_STRIDED(nvshmemx, name, _block, type, block)
TOWPATH_FOR_RMA_TYPES(TOWPATH_TYPED_BY_GROUPS)
#define TOWPATH_SIZED_BY_GROUPS(bits)                                   \
  TOWPATH_TRANSFERS(nvshmemx, , bits, _warp, void, warp, bits / 8)      \
  TOWPATH_TRANSFERS(nvshmemx, , bits, _block, void, block, bits / 8)
TOWPATH_FOR_SIZES(TOWPATH_SIZED_BY_GROUPS)
TOWPATH_TRANSFERS(nvshmemx, , mem, _warp, void, warp, 1)
TOWPATH_TRANSFERS(nvshmemx, , mem, _block, void, block, 1)

static inline void nvshmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
                                      TOWPATH_SITE) {
  TOWPATH_SITE_OF("nvshmemx_signal_op");
  towpath_gpu::signal(sig_addr, signal, sig_op, pe, towpath_site);
}
#define nvshmem_signal_op nvshmemx_signal_op
// Sources may be used again: quiet promises that, and more.
static inline void nvshmemx_flush(TOWPATH_SITE) { nvshmem_quiet(TOWPATH_SITE_ARGUMENTS); }
static inline void nvshmemx_flush_warp(TOWPATH_SITE) { nvshmem_quiet(TOWPATH_SITE_ARGUMENTS); }
static inline void nvshmemx_flush_block(TOWPATH_SITE) { nvshmem_quiet(TOWPATH_SITE_ARGUMENTS); }

#include "towpath_nvshmem_stream.h"
#include "towpath_nvshmem_refused.h"
