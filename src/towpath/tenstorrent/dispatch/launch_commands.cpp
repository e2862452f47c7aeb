// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "towpath/tenstorrent/device/device.hpp"
#include "towpath/tenstorrent/dispatch/fast_dispatch.hpp"

// A launch has the same place and length as with slow dispatch: code and configuration, then
// arguments, the launch message, and in the last word the go signal.

namespace towpath::tenstorrent {

using machine::Coordinate;
using Bytes = CommandWriter::Bytes;

namespace {

// The cores of one kind, and the offsets of a launch in their L1.
struct Cores {
  std::vector<Coordinate> all;
  std::map<std::string, std::vector<Coordinate>> by_code;
  std::vector<Bytes> arguments;  // per core, of equal length
  std::uint64_t code_at = 0;
  std::uint64_t code_bytes = 0;
  std::uint64_t arguments_at = 0;
  std::uint64_t message_at = 0;
  std::uint64_t go_at = 0;
};

// Kernels with equal names are assumed to have the same code.
std::string code_of(const Program& program, Coordinate core) {
  std::string names;
  for (const Program::Entry& entry : program.kernels()) {
    if (entry.config.core != core) continue;
    names += fmt::format("{} {};", entry.config.noc_index, entry.config.name);
  }
  return names;
}

Bytes arguments_of(const Program& program, Coordinate core) {
  Bytes bytes;
  for (const Program::Entry& entry : program.kernels()) {
    if (entry.config.core != core) continue;
    const auto words = std::as_bytes(std::span(entry.config.runtime_args));
    bytes.insert(bytes.end(), words.begin(), words.end());
  }
  return bytes;
}

Cores cores_of(const Device& device, const Program& program, machine::TileKind kind) {
  Cores cores;
  std::size_t longest = 0;
  for (const Coordinate core : program.cores()) {
    if (device.chip().tile(core).kind != kind) continue;
    cores.all.push_back(core);
    cores.by_code[code_of(program, core)].push_back(core);
    cores.arguments.push_back(arguments_of(program, core));
    longest = std::max(longest, cores.arguments.back().size());
  }
  if (cores.all.empty()) return cores;
  longest = rounded_up(longest, kRingUnitBytes);
  for (Bytes& arguments : cores.arguments) arguments.resize(longest);
  const std::uint64_t launch_bytes = device.options().launch_bytes;
  const std::uint64_t others = longest + kLaunchMessageBytes + kRingUnitBytes;
  if (others > launch_bytes) {
    throw std::invalid_argument(fmt::format(
        "a program of chip {} has {} bytes of runtime arguments for a core; of {} launch_bytes, {} "
        "are left for them",
        device.id(), longest, launch_bytes, launch_bytes - kLaunchMessageBytes - kRingUnitBytes));
  }
  cores.code_at = program.launch_at(cores.all.front());
  cores.code_bytes = launch_bytes - others;
  cores.arguments_at = cores.code_at + cores.code_bytes;
  cores.message_at = cores.arguments_at + longest;
  cores.go_at = program.launch_word(cores.all.front());
  return cores;
}

// Workers receive code and messages by multicast.
void write_workers(CommandWriter& writer, const machine::Chip& chip, const Cores& cores) {
  const Bytes code(cores.code_bytes);
  for (const auto& [names, some] : cores.by_code) {
    writer.write_packed_large(rectangles_of(chip, some), cores.code_at, code);
  }
  writer.write_packed(rectangles_of(chip, cores.all), cores.message_at, Bytes(kLaunchMessageBytes));
}

void write_ethernet_cores(CommandWriter& writer, const Cores& cores) {
  for (const Coordinate core : cores.all) {
    writer.write_linear(core, cores.code_at, Bytes(cores.code_bytes));
  }
  writer.write_packed(cores.all, cores.message_at,
                      std::vector<Bytes>(cores.all.size(), Bytes(kLaunchMessageBytes)));
}

}  // namespace

std::vector<Bytes> launch_commands(const Device& device, const Program& program,
                                   std::uint32_t ended) {
  const machine::Chip& chip = device.chip();
  const Cores workers = cores_of(device, program, machine::TileKind::worker);
  const Cores ethernet = cores_of(device, program, machine::TileKind::ethernet);
  CommandWriter writer(chip);
  writer.set_write_offsets();
  writer.wait_for_cores(ended, true);
  writer.write_packed(workers.all, workers.arguments_at, workers.arguments);
  writer.write_packed(ethernet.all, ethernet.arguments_at, ethernet.arguments);
  if (!workers.all.empty()) write_workers(writer, chip, workers);
  if (!ethernet.all.empty()) write_ethernet_cores(writer, ethernet);
  writer.wait_for_writes();
  const auto word = static_cast<std::uint32_t>(program.number() + 1);
  writer.go_signal(rectangles_of(chip, workers.all), workers.go_at, word);
  writer.go_signal(ethernet.all, ethernet.go_at, word);
  return writer.take_entries();
}

}  // namespace towpath::tenstorrent
