// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>

#include "towpath/os/command.hpp"
#include "towpath/os/compile_cache.hpp"
#include "towpath/tenstorrent/core/ethernet_memory_map.hpp"
#include "towpath/tenstorrent/metalium/kernel_headers.hpp"
#include "towpath/tenstorrent/metalium/kernel_linker.hpp"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

// Compiles a kernel's source to a shared object in the cache.

namespace towpath::tenstorrent::metalium {

namespace fs = std::filesystem;

namespace {

// The folder of the library's headers.
fs::path header_folder() {
  os::Digest digest;
  for (const KernelHeader& header : kernel_headers()) {
    digest.add(header.path);
    digest.add(header.text);
  }
  fs::path folder = os::compile_cache("kernels") / fmt::format("{}{}", kHeaderFolder, digest.hex());
  if (fs::exists(folder)) return folder;
  const fs::path fresh = os::unfinished(folder);
  for (const KernelHeader& header : kernel_headers()) {
    const fs::path path = fresh / header.path;
    fs::create_directories(path.parent_path());
    os::write_file(path, header.text);
  }
  std::error_code error;
  fs::rename(fresh, folder, error);
  if (error) fs::remove_all(fresh);  // another process was first
  return folder;
}

std::vector<std::string> chip_definitions(const machine::Chip& chip) {
  const auto dram_banks =
      chip.dram_groups.size() * static_cast<std::size_t>(std::max(1, chip.dram.channels_per_group));
  std::vector<std::string> definitions = {
      fmt::format("-DNUM_DRAM_BANKS={}", std::max<std::size_t>(1, dram_banks)),
      fmt::format("-DNUM_L1_BANKS={}", std::max<std::size_t>(1, chip.workers.size())),
      fmt::format("-DL1_ALIGNMENT={}", chip.alignment.l1_bytes),
      fmt::format("-DDRAM_ALIGNMENT={}", chip.alignment.dram_read_bytes),
      fmt::format("-DDRAM_WRITE_ALIGNMENT={}", chip.alignment.dram_write_bytes),
      fmt::format("-DNOC_MAX_BURST_SIZE={}",
                  chip.router.packet_data_flits_max * chip.router.flit_bytes),
      fmt::format("-DTOWPATH_L1_BYTES={}", chip.l1_bytes),
      fmt::format("-DTOWPATH_ETHERNET_L1_BYTES={}", chip.ethernet_l1_bytes),
      fmt::format("-DTOWPATH_ERISC_INFO_BASE={}", ethernet_memory_map::kEriscInfoBase),
      fmt::format("-DTOWPATH_ERISC_UNRESERVED_BASE={}", ethernet_memory_map::kUnreservedBase),
      chip.architecture == "blackhole" ? "-DARCH_BLACKHOLE" : "-DARCH_WORMHOLE",
  };
  if (chip.has_host_link()) {
    const machine::Coordinate pcie = chip.pcie_tiles.front();
    definitions.push_back(fmt::format("-DPCIE_NOC_X={}", pcie.x));
    definitions.push_back(fmt::format("-DPCIE_NOC_Y={}", pcie.y));
    definitions.push_back(fmt::format("-DTOWPATH_HOST_ADDRESS={:#x}", chip.pcie.host_address));
  }
  return definitions;
}

std::vector<std::string> processor_definitions(const KernelTarget& target) {
  std::vector<std::string> definitions = {
      "-DKERNEL_BUILD",
      fmt::format("-DNOC_INDEX={}", target.noc_index),
      fmt::format("-DTOWPATH_IS_DATA_MOVEMENT_0={}",
                  target.processor == Processor::data_movement_0 ? "true" : "false"),
      fmt::format("-DTOWPATH_IS_DATA_MOVEMENT_1={}",
                  target.processor == Processor::data_movement_1 ? "true" : "false"),
  };
  switch (target.processor) {
    case Processor::data_movement_0: definitions.emplace_back("-DCOMPILE_FOR_BRISC"); break;
    case Processor::data_movement_1: definitions.emplace_back("-DCOMPILE_FOR_NCRISC"); break;
    case Processor::ethernet: definitions.emplace_back("-DCOMPILE_FOR_ERISC"); break;
    case Processor::compute: definitions.emplace_back("-DCOMPILE_FOR_TRISC"); break;
  }
  return definitions;
}

std::vector<std::string> definitions_of(const KernelSource& source, const KernelTarget& target) {
  std::vector<std::string> definitions = processor_definitions(target);
  if (!source.compile_args.empty()) {
    definitions.push_back(
        fmt::format("-DKERNEL_COMPILE_TIME_ARGS={}", fmt::join(source.compile_args, ",")));
  }
  if (!source.named_compile_args.empty()) {
    std::string map;
    for (const auto& [name, value] : source.named_compile_args) {
      map += fmt::format("{{\"{}\",{}}},", name, value);
    }
    definitions.push_back("-DKERNEL_COMPILE_TIME_ARG_MAP=" + map);
  }
  std::vector<int> formats;
  for (const CircularBuffer& buffer : source.circular_buffers) formats.push_back(buffer.format);
  if (formats.empty()) formats.push_back(0xff);
  definitions.push_back(fmt::format("-DTOWPATH_BUFFER_FORMATS={}", fmt::join(formats, ",")));
  // The host's default is the highest fidelity.
  if (target.processor == Processor::compute && !source.defines.contains("MATH_FIDELITY")) {
    definitions.emplace_back("-DMATH_FIDELITY=4");
  }
  for (const auto& [name, value] : source.defines) {
    definitions.push_back(fmt::format("-D{}={}", name, value));
  }
  return definitions;
}

// Kernels cast between 32-bit words and pointers, which GCC rejects unless it is permissive. Loads
// and stores call out (see towpath_support.h), and so does each block of instructions. Copies are
// calls, so that they can also do so, and each has a separate line: a call is never a jump, and
// equal code of two branches stays separate. Static variables of functions take no lock, as on a
// core, and an overwritten return address is detected.
std::vector<std::string> kernel_flags() {
  return {"-xc++",
          "-fsanitize=thread",
          "-fsanitize=bounds",
          "-fsanitize-coverage=trace-pc",
          "--param=tsan-distinguish-volatile=1",
          "--param=tsan-instrument-func-entry-exit=0",
          "-fpermissive",
          "-w",
          "-fno-builtin-memcpy",
          "-fno-builtin-memmove",
          "-fno-builtin-memset",
          "-fno-tree-vectorize",
          "-fno-threadsafe-statics",
          "-fno-optimize-sibling-calls",
          "-fno-tree-tail-merge",
          "-fno-crossjumping",
          "-fno-code-hoisting",
          "-fstack-protector-strong"};
}

std::vector<std::string> common_flags(const machine::Chip& chip, const fs::path& headers) {
  std::vector<std::string> flags = {
      "-std=gnu++20",         "-O2",       "-fPIC",           "-fvisibility=hidden",
      "-fno-exceptions",      "-fno-rtti", "-fno-gnu-unique", "-g1",
      "-gstatement-frontiers"};
  flags.push_back("-I" + headers.string());
  std::ranges::copy(chip_definitions(chip), std::back_inserter(flags));
  return flags;
}

// The compiler's first error, or its last line.
std::string first_error(const std::string& output) {
  std::istringstream lines(output);
  std::string line;
  std::string last;
  while (std::getline(lines, line)) {
    if (line.find("error:") != std::string::npos) return line;
    if (!line.empty()) last = line;
  }
  return last;
}

void run(const std::vector<std::string>& command, std::string_view name) {
  const os::CommandResult result = os::run_command(command);
  if (result.status == os::CommandResult::kNotFound) {
    throw std::invalid_argument(os::missing_compiler(fmt::format("kernel '{}'", name)));
  }
  if (result.status == 0) return;
  const std::string error = first_error(result.errors);
  if (error.find("exception handling disabled") != std::string::npos) {
    const std::size_t column = error.rfind(':', error.find(": error:") - 1);
    throw std::invalid_argument(fmt::format(
        "kernel '{}' uses an exception at {}; a core has no exceptions; ASSERT names what is wrong",
        name, fs::path(error.substr(0, column)).filename().string()));
  }
  throw std::invalid_argument(fmt::format("kernel '{}' does not compile: {}", name, error));
}

// The object with the entry and the calls of the instrumentation, one per chip.
fs::path support_object(const machine::Chip& chip, const fs::path& headers) {
  std::vector<std::string> command = {os::compiler()};
  std::ranges::copy(common_flags(chip, headers), std::back_inserter(command));
  command.insert(command.end(), {"-DNOC_INDEX=0", "-fno-builtin-memcpy", "-fno-builtin-memmove",
                                 "-fno-builtin-memset", "-fno-tree-loop-distribute-patterns"});
  os::Digest digest;
  for (const std::string& word : command) digest.add(word);
  digest.add(os::compiler_identity());
  fs::path object = os::compile_cache("kernels") / ("support-" + digest.hex() + ".o");
  if (os::Manifest::is_current(os::manifest_of(object))) return object;
  const os::FileTime begun = os::file_time_now();
  os::Scratch scratch;
  const fs::path& fresh = scratch.add(os::unfinished(object));
  command.insert(command.end(),
                 {"-xc++", "-c", (headers / "towpath_support.h").string(), "-o", fresh.string()});
  run(command, "towpath_support.h");
  fs::rename(fresh, object);
  os::write_manifest(object, {}, begun);
  return object;
}

// Replaces a jump to itself, the remainder of `for (;;) {}`, by a call in the assembly: the
// compiler instruments every basic block except an empty one. Constructors of global variables are
// listed for the kernel's entry, so that they run on its core.
std::string for_a_core(const std::string& assembly, std::string_view name) {
#if defined(__aarch64__)
  constexpr std::string_view kSystemCall = "svc";
  constexpr std::string_view kJump = "b";
  constexpr std::string_view kCall = "bl";
#else
  constexpr std::string_view kSystemCall = "syscall";
  constexpr std::string_view kJump = "jmp";
  constexpr std::string_view kCall = "call";
#endif
  std::string text;
  std::set<std::string> labels;  // of the next instruction
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::string operand;
    words >> word >> operand;
    if (word == ".section" && operand.starts_with(".init_array")) {
      line = "\t.section\ttowpath_constructors,\"aw\"";
    } else if (word.ends_with(':')) {
      labels.insert(word.substr(0, word.size() - 1));
    } else if (!word.empty() && word[0] != '.' && word[0] != '#') {
      if (word == kSystemCall) {
        throw std::invalid_argument(fmt::format(
            "kernel '{}' has the instruction {}; a core has no operating system", name, word));
      }
      if (word == kJump && labels.contains(operand)) {
        line = fmt::format("\t{}\ttowpath_endless_loop", kCall);
      }
      labels.clear();
    }
    text += line;
    text += '\n';
  }
  return text;
}

void compile(const KernelSource& source, const fs::path& library, const fs::path& object,
             std::vector<std::string> command) {
  os::Scratch scratch;
  const os::FileTime begun = os::file_time_now();
  const std::string name = source.file.string();
  fs::path file = fs::absolute(source.file);
  if (!source.text.empty()) {
    // By the name in the debug information.
    const fs::path& folder = scratch.add(os::unfinished(library));
    fs::create_directory(folder);
    file = folder / (source.file.has_filename() ? source.file.filename() : "kernel.cpp");
    os::write_file(file, fmt::format("#line 1 \"{}\"\n{}", name, source.text));
  }
  const fs::path& fresh = scratch.add(os::unfinished(library));
  const fs::path& rule = scratch.add(fresh.string() + ".d");
  const fs::path& assembly = scratch.add(fresh.string() + ".s");
  const fs::path& kernel_object = scratch.add(fresh.string() + ".o");
  command.insert(command.end(),
                 {"-MD", "-MF", rule.string(), "-S", file.string(), "-o", assembly.string()});
  run(command, name);
  os::write_file(assembly, for_a_core(os::read_file(assembly), name));
  run({command.front(), "-c", assembly.string(), "-o", kernel_object.string()}, name);
  link_kernel(
      {.compiler = command.front(), .kernel = name, .object = kernel_object, .support = object},
      fresh);
  std::vector<fs::path> sources = os::dependencies(rule);
  if (!source.text.empty()) std::erase(sources, file);
  fs::rename(fresh, library);
  os::write_manifest(library, sources, begun);
  os::evict(library.parent_path());
}

}  // namespace

std::string_view name_of(Processor processor) {
  switch (processor) {
    case Processor::data_movement_0: return "data_movement_0";
    case Processor::data_movement_1: return "data_movement_1";
    case Processor::compute: return "compute";
    case Processor::ethernet: break;
  }
  return "ethernet";
}

CompiledKernel compile_kernel(const KernelSource& source, const KernelTarget& target) {
  if (target.chip->architecture.empty()) {
    throw std::invalid_argument(
        fmt::format("kernel '{}' cannot be compiled for chip '{}', whose architecture is missing; "
                    "it must be wormhole_b0 or blackhole",
                    source.file.string(), target.chip->name));
  }
  if (source.text.empty() && !fs::is_regular_file(source.file)) {
    throw std::invalid_argument(
        fmt::format("there is no kernel file '{}'; it must be a C++ file with kernel_main()",
                    source.file.string()));
  }
  const fs::path headers = header_folder();
  std::vector<std::string> command = {os::compiler()};
  std::ranges::copy(common_flags(*target.chip, headers), std::back_inserter(command));
  std::ranges::copy(definitions_of(source, target), std::back_inserter(command));
  std::ranges::copy(kernel_flags(), std::back_inserter(command));
  if (source.file.has_parent_path()) {
    command.push_back("-I" + fs::absolute(source.file).parent_path().string());
  }
  for (const fs::path& folder : source.include_folders) {
    command.push_back("-I" + fs::absolute(folder).string());
  }
  // The vendor's build also includes it.
  command.insert(command.end(), {"-include", (headers / "api/dataflow/dataflow_api.h").string()});

  os::Digest digest;
  for (const std::string& word : command) digest.add(word);
  digest.add(fs::absolute(source.file).string());
  digest.add(source.text);
  digest.add(os::compiler_identity());
  const fs::path library = os::compile_cache("kernels") / (digest.hex() + ".so");
  if (!os::Manifest::is_current(os::manifest_of(library))) {
    compile(source, library, support_object(*target.chip, headers), std::move(command));
  }
  return {library, target};
}

}  // namespace towpath::tenstorrent::metalium
