// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucp/api/ucp.h>

// UCX's functions, loaded from the system's library. Not linked, so that the rest of Towpath runs
// without it.

namespace towpath::transport::ucx {

#define TOWPATH_UCP_FUNCTIONS(F)    \
  F(ucp_config_read)                \
  F(ucp_config_modify)              \
  F(ucp_config_release)             \
  F(ucp_init_version)               \
  F(ucp_cleanup)                    \
  F(ucp_worker_create)              \
  F(ucp_worker_destroy)             \
  F(ucp_worker_get_address)         \
  F(ucp_worker_release_address)     \
  F(ucp_worker_progress)            \
  F(ucp_worker_set_am_recv_handler) \
  F(ucp_ep_create)                  \
  F(ucp_ep_close_nbx)               \
  F(ucp_am_send_nbx)                \
  F(ucp_am_recv_data_nbx)           \
  F(ucp_am_data_release)            \
  F(ucp_request_check_status)       \
  F(ucp_request_free)

struct UcpLibrary {
#define TOWPATH_UCP_POINTER(NAME) decltype(&::NAME) NAME = nullptr;
  TOWPATH_UCP_FUNCTIONS(TOWPATH_UCP_POINTER)
#undef TOWPATH_UCP_POINTER
  const char* (*ucs_status_string)(ucs_status_t) = nullptr;
};

// Throws std::runtime_error with one sentence on what to install if it is absent.
const UcpLibrary& ucp_library();

}  // namespace towpath::transport::ucx
