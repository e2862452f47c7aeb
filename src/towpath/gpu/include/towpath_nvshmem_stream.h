// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NVSHMEM's calls on a stream; nvshmemx.h includes it. The collectives' are beside their others.

#define TOWPATH_ON_STREAM(result, name, parameters, ...)                                          \
  __towpath_optional__ static inline result name##_on_stream(TOWPATH_UNWRAP parameters cudaStream_t stream,            \
                                        TOWPATH_SITE) {                                           \
    TOWPATH_SITE_OF(#name "_on_stream");                                                          \
    towpath_gpu::run_on_stream(stream, towpath_site.call, [=] { __VA_ARGS__; });                  \
  }
#define TOWPATH_TRANSFERS_ON_STREAM(prefix, suffix, type, size)                                   \
  TOWPATH_ON_STREAM(void, nvshmemx_##prefix##put##suffix,                                         \
                    (type * dest, const type* source, size_t nelems, int pe, ),                   \
                    towpath_gpu::put(towpath_gpu::Scope::block, false, dest, source,              \
                                     nelems * (size), pe, {}, towpath_site))                      \
  TOWPATH_ON_STREAM(void, nvshmemx_##prefix##put##suffix##_nbi,                                   \
                    (type * dest, const type* source, size_t nelems, int pe, ),                   \
                    towpath_gpu::put(towpath_gpu::Scope::block, true, dest, source,               \
                                     nelems * (size), pe, {}, towpath_site))                      \
  TOWPATH_ON_STREAM(void, nvshmemx_##prefix##get##suffix,                                         \
                    (type * dest, const type* source, size_t nelems, int pe, ),                   \
                    towpath_gpu::get(towpath_gpu::Scope::block, false, dest, source,              \
                                     nelems * (size), pe, towpath_site))                          \
  TOWPATH_ON_STREAM(void, nvshmemx_##prefix##get##suffix##_nbi,                                   \
                    (type * dest, const type* source, size_t nelems, int pe, ),                   \
                    towpath_gpu::get(towpath_gpu::Scope::block, true, dest, source,               \
                                     nelems * (size), pe, towpath_site))                          \
  TOWPATH_ON_STREAM(                                                                              \
      void, nvshmemx_##prefix##put##suffix##_signal,                                              \
      (type * dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal,       \
       int sig_op, int pe, ),                                                                     \
      towpath_gpu::put(towpath_gpu::Scope::block, false, dest, source, nelems * (size), pe,       \
                       {towpath_gpu::signal_operation(sig_op), sig_addr, signal}, towpath_site))  \
  TOWPATH_ON_STREAM(                                                                              \
      void, nvshmemx_##prefix##put##suffix##_signal_nbi,                                          \
      (type * dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal,       \
       int sig_op, int pe, ),                                                                     \
      towpath_gpu::put(towpath_gpu::Scope::block, true, dest, source, nelems * (size), pe,        \
                       {towpath_gpu::signal_operation(sig_op), sig_addr, signal}, towpath_site))

#define TOWPATH_TYPED_ON_STREAM(name, type)                                                       \
  TOWPATH_TRANSFERS_ON_STREAM(name##_, , type, sizeof(type))                                      \
  TOWPATH_ON_STREAM(void, nvshmemx_##name##_p, (type * dest, const type value, int pe, ),         \
                    towpath_gpu::put_value<type>(dest, value, pe, towpath_site))                  \
  TOWPATH_ON_STREAM(void, nvshmemx_##name##_iput,                                                 \
                    (type * dest, const type* source, ptrdiff_t dst, ptrdiff_t sst,               \
                     size_t nelems, int pe, ),                                                    \
                    towpath_gpu::put_strided(towpath_gpu::Scope::thread, dest, source, dst, sst,  \
                                             nelems, pe, towpath_site))                           \
  TOWPATH_ON_STREAM(void, nvshmemx_##name##_iget,                                                 \
                    (type * dest, const type* source, ptrdiff_t dst, ptrdiff_t sst,               \
                     size_t nelems, int pe, ),                                                    \
                    towpath_gpu::get_strided(towpath_gpu::Scope::thread, dest, source, dst, sst,  \
                                             nelems, pe, towpath_site))                           \
  __towpath_optional__ static inline type nvshmemx_##name##_g_on_stream(const type* source, int pe,                    \
                                                   cudaStream_t stream, TOWPATH_SITE) {           \
    TOWPATH_SITE_OF("nvshmemx_" #name "_g_on_stream");                                            \
    TOWPATH_CALL(synchronize, stream, false);                                                     \
    return towpath_gpu::get_value<type>(source, pe, towpath_site);                                \
  }
TOWPATH_FOR_RMA_TYPES(TOWPATH_TYPED_ON_STREAM)
#define TOWPATH_SIZED_ON_STREAM(bits) TOWPATH_TRANSFERS_ON_STREAM(, bits, void, bits / 8)
TOWPATH_FOR_SIZES(TOWPATH_SIZED_ON_STREAM)
TOWPATH_TRANSFERS_ON_STREAM(, mem, void, 1)

TOWPATH_ON_STREAM(void, nvshmemx_quiet, (), TOWPATH_CALL(quiet, &towpath_site))
TOWPATH_ON_STREAM(void, nvshmemx_signal_op,
                  (uint64_t * sig_addr, uint64_t signal, int sig_op, int pe, ),
                  towpath_gpu::signal(sig_addr, signal, sig_op, pe, towpath_site))
TOWPATH_ON_STREAM(void, nvshmemx_signal_wait_until,
                  (uint64_t * sig_addr, int cmp, uint64_t cmp_value, ),
                  towpath_gpu::wait_one(sig_addr, cmp, cmp_value, false, true, towpath_site))
#define TOWPATH_WAITS_ON_STREAM(name, type)                                                       \
  TOWPATH_ON_STREAM(void, nvshmemx_##name##_wait_until, (type * ivar, int cmp, type value, ),     \
                    towpath_gpu::wait_one<type>(ivar, cmp, value, false, false, towpath_site))    \
  TOWPATH_ON_STREAM(void, nvshmemx_##name##_wait_until_all,                                       \
                    (type * ivars, size_t nelems, const int* status, int cmp, type value, ),      \
                    towpath_gpu::wait_many<type>(towpath_gpu::Quantity::all, false, ivars,        \
                                                 nelems, nullptr, status, cmp, &value, false,     \
                                                 towpath_site))                                   \
  TOWPATH_ON_STREAM(void, nvshmemx_##name##_wait_until_all_vector,                                \
                    (type * ivars, size_t nelems, const int* status, int cmp, type* values, ),    \
                    towpath_gpu::wait_many<type>(towpath_gpu::Quantity::all, false, ivars,        \
                                                 nelems, nullptr, status, cmp, values, true,      \
                                                 towpath_site))
TOWPATH_FOR_WAIT_TYPES(TOWPATH_WAITS_ON_STREAM)
