// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/library.hpp"

namespace towpath::virtual_gpu {

Library& library() {
  static constinit Library only;
  return only;
}

}  // namespace towpath::virtual_gpu
