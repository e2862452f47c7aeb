// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/units.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

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

std::atomic<int> compilations = 0;

// The words of the command that compiles a unit, in lines, and the unit.
std::vector<std::string> command_of(const std::string& lines, const std::string& unit) {
  std::vector<std::string> words;
  std::istringstream stream(lines);
  for (std::string word; std::getline(stream, word);) words.push_back(word);
  words.push_back(unit);
  return words;
}

// The environment without this process's own functions of the C library.
std::vector<char*> environment() {
  std::vector<char*> kept;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("LD_PRELOAD=")) kept.push_back(*each);
  }
  kept.push_back(nullptr);
  return kept;
}

// Ended with this process. Between fork and exec, only system calls: other threads may hold locks.
[[noreturn]] void become(char* const* words, char* const* variables) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  execvpe(words[0], words, variables);
  _exit(127);
}

// True if it does its work. The command has a deadline.
bool run(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const std::vector<char*> variables = environment();
  ++compilations;
  const pid_t child = fork();
  if (child == 0) become(words.data(), variables.data());
  int status = 0;
  pid_t ended = -1;
  do {
    ended = child < 0 ? -1 : waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  --compilations;
  return ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void* load(const std::string& unit) {
  const char* const folder = std::getenv("TOWPATH_DEVICE_UNITS");
  const char* const command = std::getenv("TOWPATH_DEVICE_UNIT_COMMAND");
  if (folder == nullptr || command == nullptr) {
    stop("the kernels of " + unit + " are not compiled; start the program by towpath nccl run");
  }
  const std::string file = std::string(folder) + "/" + unit + "/" + unit + ".so";
  if (access(file.c_str(), R_OK) != 0 && !run(command_of(command, unit))) {
    stop("the kernels of " + unit + " do not compile");
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

bool is_compiling_unit() { return compilations > 0; }

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
