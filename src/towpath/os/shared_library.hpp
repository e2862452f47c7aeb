// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

// A library of the system that is used where it is installed, and is no part of what runs without
// it. It stays loaded.

namespace towpath::os {

class SharedLibrary {
 public:
  // The first of these names that can be loaded.
  SharedLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (handle_ != nullptr) break;
      handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
      // The first name is the one to install.
      if (handle_ == nullptr && reason_.empty()) reason_ = ::dlerror();
    }
  }
  bool is_loaded() const { return handle_ != nullptr; }
  // Why it is not loaded, as the system says it: names the file and what is wrong with it.
  const std::string& reason() const { return reason_; }

  // Null where the library has no such function.
  template <typename Function>
  void find(Function*& function, const char* name) const {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_ = nullptr;
  std::string reason_;
};

}  // namespace towpath::os
