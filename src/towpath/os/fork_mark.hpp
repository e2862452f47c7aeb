// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace towpath::os {

// Distinguishes a forked child from its parent: a page that the kernel wipes in the child. A check
// costs one load; getpid() is a system call.
class ForkMark {
 public:
  // Throws std::system_error if the kernel lacks MADV_WIPEONFORK (Linux before 4.14).
  ForkMark();
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  bool is_forked() const { return *static_cast<const volatile char*>(page_) == 0; }

 private:
  void* page_;
};

}  // namespace towpath::os
