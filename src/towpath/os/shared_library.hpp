// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <initializer_list>

// A library of the system that is used where it is installed, and is no part of what runs without
// it. It stays loaded.

namespace towpath::os {

class SharedLibrary {
 public:
  // The first of these names that can be loaded.
  SharedLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (handle_ == nullptr) handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  bool is_loaded() const { return handle_ != nullptr; }

  // Null where the library has no such function.
  template <typename Function>
  void find(Function*& function, const char* name) const {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace towpath::os
