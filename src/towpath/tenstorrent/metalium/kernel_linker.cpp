// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_linker.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "towpath/os/command.hpp"
#include "towpath/os/shared_library.hpp"

namespace towpath::tenstorrent::metalium {

namespace fs = std::filesystem;

namespace {

// A function that is used but not defined, and FILE:LINE of its first use.
struct Missing {
  std::string symbol;
  std::string place{};
};

// A feature that no core has, and the prefixes of symbols that need it.
struct Lack {
  std::string_view sentence;
  std::vector<std::string_view> symbols;
};

// In the order of precedence: a thread also needs a heap.
std::span<const Lack> lacks() {
  static const std::vector<Lack> kLacks = {
      {"a core has no operating system, so no processes, threads or commands",
       {"fork",          "vfork",
        "exec",          "posix_spawn",
        "system",        "popen",
        "wait",          "clone",
        "pthread_",      "thrd_",
        "mtx_",          "_ZNSt6thread",
        "_ZNKSt6thread", "_ZNSt18condition_variable",
        "syscall",       "sleep",
        "usleep",        "nanosleep",
        "getenv",        "getpid",
        "gettimeofday",  "clock_gettime",
        "_ZNSt6chrono",  "dlopen",
        "dlsym",         "mmap",
        "socket",        "connect"}},
      {"a core has no process that could end; a kernel ends when kernel_main() returns",
       {"exit", "_exit", "_Exit", "quick_exit", "at_quick_exit", "atexit", "on_exit"}},
      {"a core has no signals; ASSERT names what is wrong",
       {"abort", "raise", "kill", "signal", "sigaction", "alarm", "__assert_fail", "longjmp",
        "_ZSt9terminate", "setjmp", "_setjmp", "__sigsetjmp", "__longjmp_chk"}},
      {"a core has no files; DPRINT reports",
       {"fopen",
        "freopen",
        "fdopen",
        "fclose",
        "fread",
        "fwrite",
        "fprintf",
        "printf",
        "vprintf",
        "vfprintf",
        "__printf_chk",
        "__fprintf_chk",
        "scanf",
        "__isoc99_scanf",
        "getchar",
        "putchar",
        "puts",
        "fputs",
        "fgets",
        "open",
        "close",
        "read",
        "write",
        "std",
        "unlink",
        "remove",
        "_ZSt4cout",
        "_ZSt4cerr",
        "_ZNSt8ios_base",
        "_ZNSo",
        "_ZNSi",
        "_ZStls",
        "_ZNSt14basic_ofstream",
        "_ZNSt14basic_ifstream",
        "_ZNSt13basic_filebuf"}},
      {"a core has no heap; the host hands out L1: circular buffers, semaphores and buffers",
       {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "memalign",
        "strdup", "_Znw", "_Zna", "_Zdl", "_Zda", "_ZNSt7__cxx1112basic_string"}},
      {"a core has no exceptions; ASSERT names what is wrong",
       {"__cxa_throw", "__cxa_allocate_exception", "__cxa_begin_catch", "_ZSt20__throw",
        "_ZSt24__throw", "_ZSt19__throw", "_ZSt17__throw", "_ZSt28__throw", "_ZSt25__throw"}},
  };
  return kLacks;
}

// A C name is matched as a whole, and a mangled one by its start.
bool needs(const std::string& symbol, std::string_view name) {
  const bool is_begin = name.starts_with("_Z") || name.ends_with('_') || name == "exec" ||
                        name == "std" || name == "wait";
  return is_begin ? symbol.starts_with(name) : symbol == name;
}

// The symbols that a linker does not find, each listed once. A place in the kernel's file is better
// than one in a header.
std::vector<Missing> missing_in(const std::string& output, const std::string& kernel) {
  constexpr std::string_view kUndefined = ": undefined reference to `";
  const std::string file = fs::path(kernel).filename().string() + ":";
  std::vector<Missing> all;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t middle = line.find(kUndefined);
    if (middle == std::string::npos) continue;
    const std::size_t begin = middle + kUndefined.size();
    const std::string symbol = line.substr(begin, line.find('\'', begin) - begin);
    std::string place = line.substr(0, middle);
    place = place.substr(place.find_last_of("/ ") + 1);
    auto known = std::ranges::find(all, symbol, &Missing::symbol);
    if (known == all.end()) known = all.insert(all.end(), {symbol});
    if (known->place.empty() && place.starts_with(file)) known->place = place;
  }
  return all;
}

std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  if (name == nullptr) return symbol;
  const std::string text = name.get();
  return text.size() <= 80 ? text : text.substr(0, text.find_first_of("(<"));
}

bool is_mathematics(const Missing& missing) {
  const os::SharedLibrary library{"libm.so.6"};
  void (*function)() = nullptr;
  library.find(function, missing.symbol.c_str());
  Dl_info info;
  return function != nullptr && ::dladdr(reinterpret_cast<void*>(function), &info) != 0 &&
         fs::path(info.dli_fname).filename().string().starts_with("libm");
}

[[noreturn]] void refuse(const std::string& kernel, const Missing& missing, std::string_view why) {
  throw std::invalid_argument(fmt::format("kernel '{}' uses {}{}{}; {}", kernel,
                                          readable(missing.symbol),
                                          missing.place.empty() ? "" : " at ", missing.place, why));
}

void refuse_missing(const std::string& kernel, const std::vector<Missing>& missing) {
  for (const Lack& lack : lacks()) {
    for (const std::string_view name : lack.symbols) {
      const auto found = std::ranges::find_if(
          missing, [&](const Missing& one) { return needs(one.symbol, name); });
      if (found != missing.end()) refuse(kernel, *found, lack.sentence);
    }
  }
  for (const Missing& one : missing) {
    if (::dlsym(RTLD_DEFAULT, one.symbol.c_str()) != nullptr) {
      refuse(kernel, one, "a kernel is linked without the host's libraries, as for a core");
    }
  }
  throw std::invalid_argument(
      fmt::format("kernel '{}' uses {} and does not define it; a kernel is a C++ file with void "
                  "kernel_main(), and all that this uses",
                  kernel, readable(missing.front().symbol)));
}

}  // namespace

void link_kernel(const KernelParts& parts, const fs::path& library) {
  std::vector<std::string> command = {parts.compiler,
                                      "-shared",
                                      "-nodefaultlibs",
                                      "-Wl,-Bsymbolic",
                                      "-Wl,-z,now,-z,defs",
                                      "-Wl,--no-demangle",
                                      parts.object.string(),
                                      parts.support.string(),
                                      "-o",
                                      library.string(),
                                      "-lgcc"};
  os::CommandResult result = os::run_command(command);
  std::vector<Missing> missing = missing_in(result.errors, parts.kernel);
  if (!missing.empty() && std::ranges::all_of(missing, is_mathematics)) {
    command.emplace_back("-lm");
    result = os::run_command(command);
    missing = missing_in(result.errors, parts.kernel);
  }
  if (result.status == 0) return;
  std::erase_if(missing, is_mathematics);
  if (!missing.empty()) refuse_missing(parts.kernel, missing);
  throw std::invalid_argument(fmt::format("kernel '{}' cannot be linked: {}", parts.kernel,
                                          result.errors.substr(0, result.errors.find('\n'))));
}

}  // namespace towpath::tenstorrent::metalium
