// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

// An optional system library. Code that does not use it runs without it. It stays loaded.

namespace towpath::os {

class SharedLibrary {
 public:
  // Loads the first available name.
  SharedLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (handle_ != nullptr) break;
      handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
      // Reports the first name, which is the one to install.
      if (handle_ == nullptr && reason_.empty()) reason_ = ::dlerror();
    }
  }
  bool is_loaded() const { return handle_ != nullptr; }
  // The loader's error message: names the file and the problem.
  const std::string& reason() const { return reason_; }

  // Null if the library lacks the function.
  template <typename Function>
  void find(Function*& function, const char* name) const {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_ = nullptr;
  std::string reason_;
};

}  // namespace towpath::os
