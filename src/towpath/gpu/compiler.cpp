// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/compiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "towpath/gpu/errors.hpp"
#include "towpath/gpu/source_step.hpp"
#include "towpath/os/command.hpp"
#include "towpath/os/compile_cache.hpp"

#ifndef TOWPATH_GPU_INCLUDE
#define TOWPATH_GPU_INCLUDE ""
#endif

namespace towpath::gpu {

namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kErrorLinesMax = 12;

std::string environment_or(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == 0 ? otherwise : std::string(value);
}

// Code is compiled for this processor. Another processor with the same home directory has other
// code.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("flags") || line.starts_with("Features")) return line;
  }
  return {};
}

// A stack of floating-point and pointer options: no contraction, so that a host without fused
// multiplication gives the same bits, and no strict aliasing, because kernels read float as float4.
const Words& common_flags() {
  static const Words flags = {"-std=c++20",
                              "-O2",
                              "-g1",
                              "-fPIC",
                              "-w",
                              "-march=native",
                              "-ffp-contract=off",
                              "-fno-strict-aliasing",
                              "-fvisibility=hidden",
                              "-fno-gnu-unique",
                              "-fno-tree-sra",
                              "-fno-ipa-icf"};
  return flags;
}

const Words& counting_flags() {
  static const Words flags = {"-fsanitize=thread", "--param", "tsan-distinguish-volatile=1",
                              "--param", "tsan-instrument-func-entry-exit=0",
                              // A place is the return address of a call.
                              "-fno-optimize-sibling-calls"};
  return flags;
}

// The compiler names a text from its standard input after standard input.
std::string named_as(const std::string& source, std::string text) {
  const std::string was = "\"<stdin>\"";
  for (std::size_t at = text.find(was); at != std::string::npos; at = text.find(was, at)) {
    text.replace(at, was.size(), fmt::format("\"{}\"", source));
    at += source.size() + 2;
  }
  return text;
}

// Calls of the source that towpath_gpu_object.h takes.
Words wrapped_calls() {
  Words flags;
  for (const char* const name :
       {"memcpy", "memmove", "memset", "malloc", "calloc", "free", "_Znwm", "_Znam", "_ZdlPv",
        "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "__cxa_allocate_exception"}) {
    flags.push_back(std::string("-Wl,--wrap=") + name);
  }
  return flags;
}

// The digest of a command and of all else that decides its result, except the content of the files
// that the compiler reads.
std::string digest_of(const Words& command) {
  os::Digest digest;
  for (const std::string& word : command) digest.add(word);
  digest.add(fs::current_path().string());  // of relative names
  for (const char* const folders : {"CPATH", "CPLUS_INCLUDE_PATH"}) {
    digest.add(environment_or(folders, ""));
  }
  digest.add(processor());
  digest.add(os::compiler_identity());
  return digest.hex();
}

[[noreturn]] void refuse(const std::string& source, const os::CommandResult& failed) {
  if (failed.status == os::CommandResult::kNotFound) {
    throw KernelError(KernelError::Kind::compilation, os::missing_compiler(source));
  }
  std::istringstream lines(failed.errors);
  std::string text;
  std::string line;
  std::size_t count = 0;
  bool has_error = false;
  while (std::getline(lines, line) && count < kErrorLinesMax) {
    has_error = has_error || line.find("error") != std::string::npos;
    if (!has_error) continue;
    text += "\n" + line;
    ++count;
  }
  throw KernelError(KernelError::Kind::compilation, fmt::format("{} does not compile:{}", source,
                                                                has_error ? text : failed.errors));
}

// The compiler with the options of all parts of an object. Our headers precede the user's.
Words compiler_of(const fs::path& include, bool counts_accesses) {
  Words command = {os::compiler(), "-I", include.string()};
  std::ranges::copy(common_flags(), std::back_inserter(command));
  if (counts_accesses) std::ranges::copy(counting_flags(), std::back_inserter(command));
  return command;
}

void run(const Words& command, const std::string& source) {
  const os::CommandResult result = os::run_command(command);
  if (result.status != 0) refuse(source, result);
}

// The part of each object that does not depend on the source. It takes as long to compile as a
// short source, so that it is compiled once for all.
fs::path support_object(const fs::path& header, bool counts_accesses, const std::string& source) {
  Words command = compiler_of(header.parent_path(), counts_accesses);
  command.insert(command.end(), {"-x", "c++", "-include", "cuda_runtime.h", "-c", header.string()});
  const std::string name = fmt::format("support-{}.o", digest_of(command));
  const fs::path object = os::compile_cache("gpu") / name;
  if (os::Manifest::is_current(os::manifest_of(object))) return object;
  const os::FileTime begun = os::file_time_now();
  os::Scratch scratch;
  const std::string stem = os::unfinished(object).string();
  for (const char* const suffix : {".d", ".o"}) scratch.add(stem + suffix);
  command.insert(command.end(), {"-MD", "-MF", stem + ".d", "-o", stem + ".o"});
  run(command, source);
  fs::rename(stem + ".o", object);
  os::write_manifest(object, os::dependencies(stem + ".d"), begun);
  return object;
}

}  // namespace

fs::path default_include() { return environment_or("TOWPATH_GPU_INCLUDE", TOWPATH_GPU_INCLUDE); }

fs::path compile(const std::string& source, const CompileOptions& options) {
  if (!fs::exists(source)) {
    throw KernelError(KernelError::Kind::compilation, fmt::format("there is no file '{}'", source));
  }
  const fs::path include = options.include.empty() ? default_include() : options.include;
  Words command = compiler_of(include, options.counts_accesses);
  const auto add = [&command](const Words& words) {
    command.insert(command.end(), words.begin(), words.end());
  };
  add(options.flags);
  Words key = command;
  key.push_back(source);
  key.insert(key.end(), options.kernels.begin(), options.kernels.end());
  const fs::path object = os::compile_cache("gpu") / (digest_of(key) + ".so");
  if (os::Manifest::is_current(os::manifest_of(object))) return object;

  const fs::path support_header = include / "towpath_gpu_object.h";
  const fs::path support = support_object(support_header, options.counts_accesses, source);
  const os::FileTime begun = os::file_time_now();
  os::Scratch scratch;
  const std::string stem = os::unfinished(object).string();
  for (const char* const suffix : {".d", ".ii", ".o", ".so"}) scratch.add(stem + suffix);
  Words preprocess = command;
  preprocess.insert(preprocess.end(), {"-E", "-x", "c++", "-include", "cuda_runtime.h", "-MD",
                                       "-MF", stem + ".d", "-"});
  os::CommandResult result = os::run_command(preprocess, fmt::format("#include \"{}\"\n", source));
  if (result.status != 0) refuse(source, result);
  os::write_file(stem + ".ii",
                 cpp_from_cuda(named_as(source, std::move(result.output)), options.kernels));
  add({"-fpreprocessed", "-x", "c++", "-c", stem + ".ii", "-o", stem + ".o"});
  run(command, source);
  // In two steps: one step would link the runtime of the sanitizer.
  command = {os::compiler(), "-shared", "-Wl,-Bsymbolic", "-Wl,--wrap=exit"};
  if (options.counts_accesses) add(wrapped_calls());
  add({stem + ".o", support.string(), "-o", stem + ".so"});
  run(command, source);
  fs::rename(stem + ".so", object);
  std::vector<fs::path> sources = os::dependencies(stem + ".d");
  sources.push_back(support_header);
  os::write_manifest(object, sources, begun);
  os::evict(object.parent_path());
  return object;
}

}  // namespace towpath::gpu
