// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/ucx/ucp_library.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "towpath/os/shared_library.hpp"

namespace towpath::transport::ucx {
namespace {

// A setting that UCX reads when it is loaded, unless set by the user.
class Setting {
 public:
  Setting(const char* name, const char* value)
      : name_(name), is_ours_(std::getenv(name) == nullptr) {
    if (is_ours_) ::setenv(name_, value, 0);
  }
  ~Setting() {
    if (is_ours_) ::unsetenv(name_);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  bool is_ours_;
};

UcpLibrary load() {
  // Signals belong to the program, and this transport reports a peer's death.
  const Setting no_handlers("UCX_ERROR_SIGNALS", "");
  const Setting quiet("UCX_LOG_LEVEL", "fatal");
  const os::SharedLibrary ucp{"libucp.so.0"};
  const os::SharedLibrary ucs{"libucs.so.0"};
  if (!ucp.is_loaded() || !ucs.is_loaded()) {
    throw std::runtime_error(fmt::format(
        "transport 'ucx' needs the library UCX, which cannot be loaded ({}); install it "
        "(Debian, Ubuntu: libucx0)",
        (ucp.is_loaded() ? ucs : ucp).reason()));
  }
  UcpLibrary library;
  const auto find = [](const os::SharedLibrary& from, auto& function, const char* name) {
    from.find(function, name);
    if (function != nullptr) return;
    throw std::runtime_error(
        fmt::format("transport 'ucx' needs UCX 1.12 or newer; the installed one has no {}", name));
  };
#define TOWPATH_UCP_FIND(NAME) find(ucp, library.NAME, #NAME);
  TOWPATH_UCP_FUNCTIONS(TOWPATH_UCP_FIND)
#undef TOWPATH_UCP_FIND
  find(ucs, library.ucs_status_string, "ucs_status_string");
  return library;
}

}  // namespace

const UcpLibrary& ucp_library() {
  static const UcpLibrary library = load();
  return library;
}

}  // namespace towpath::transport::ucx
