// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/units.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

struct Stub {
  std::string unit, name;
};

// Filled before main().
struct Units {
  std::mutex mutex;
  std::map<const void*, Stub> stubs;
  std::map<std::string, void*> loaded;
};

Units& units() {
  static Units* const only = new Units;
  return *only;
}

void* load(const std::string& unit) {
  const char* const folder = std::getenv("TOWPATH_NCCL_UNITS");
  const char* const command = std::getenv("TOWPATH_NCCL_UNIT_COMMAND");
  if (folder == nullptr || command == nullptr) {
    stop("the kernels of " + unit + " are not compiled; start the program by towpath nccl run");
  }
  const std::string file = std::string(folder) + "/" + unit + "/" + unit + ".so";
  if (access(file.c_str(), R_OK) != 0) {
    const std::string line = std::string("unset LD_PRELOAD; ") + command + " " + unit + " >&2";
    if (std::system(line.c_str()) != 0) stop("the kernels of " + unit + " do not compile");
  }
  void* const found = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (found == nullptr) stop(std::string("cannot load kernels: ") + dlerror());
  return found;
}

void* function_of(const Stub& stub) {
  Units& all = units();
  const std::scoped_lock lock(all.mutex);
  void*& library = all.loaded[stub.unit];
  // The stack of a kernel's thread has no room for the loader.
  if (library == nullptr) std::thread([&] { library = load(stub.unit); }).join();
  void* const found = dlsym(library, stub.name.c_str());
  if (found == nullptr) stop("the kernels of " + stub.unit + " have no " + stub.name);
  return found;
}

}  // namespace

void* code_of_stub(const void* stub) {
  Units& all = units();
  const auto found = all.stubs.find(stub);
  return found == all.stubs.end() ? nullptr : function_of(found->second);
}

}  // namespace towpath::virtual_gpu

extern "C" {

void towpath_add_stub(const void* stub, const char* unit, const char* name) {
  towpath::virtual_gpu::units().stubs[stub] = {unit, name};
}
void* towpath_unit_function(const char* unit, const char* name) {
  return towpath::virtual_gpu::function_of({unit, name});
}

}  // extern "C"
