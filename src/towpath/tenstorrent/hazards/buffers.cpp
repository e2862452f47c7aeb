// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/buffers.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"

namespace towpath::tenstorrent {

namespace {

// "writes bytes 0 to 63 of tile (1, 1)"
std::string described(const Buffers::Use& use) {
  const L1Bytes& bytes = use.bytes;
  return fmt::format("{} bytes {} to {} of tile ({}, {})", use.verb, bytes.offset, bytes.end() - 1,
                     bytes.tile.x, bytes.tile.y);
}

}  // namespace

// --- declarations -------------------------------------------------------------------------------

void Buffers::add(int chip, const Allocation& allocation) {
  Chip& at = chips_[index(chip)];
  for (const noc::Address& place : allocation.places) {
    at.parts[records_.memory_of(chip, place.tile)].push_back(
        {place.offset, place.offset + allocation.size_bytes, at.buffers.size()});
  }
  at.buffers.push_back({.allocation = allocation});
}

void Buffers::add_word_at_start(int chip, int program, int generation,
                                const std::vector<machine::Coordinate>& cores,
                                std::uint64_t offset) {
  for (const machine::Coordinate core : cores) {
    chips_[index(chip)].words_at_start.push_back(
        {program, generation, records_.memory_of(chip, core), offset});
  }
}

// In the order of their first programs.
std::vector<std::size_t> Buffers::buffers_at(int chip, const L1Bytes& bytes) const {
  const Chip& at = chips_[index(chip)];
  std::vector<std::size_t> found;
  if (at.buffers.empty() || !records_.chip(chip).holds(bytes.tile)) return found;
  const auto parts = at.parts.find(records_.memory_of(chip, bytes.tile));
  if (parts == at.parts.end()) return found;
  for (const Part& part : parts->second) {
    if (part.first < bytes.end() && bytes.offset < part.end) found.push_back(part.buffer);
  }
  std::ranges::stable_sort(
      found, {}, [&](std::size_t buffer) { return at.buffers[buffer].allocation.first_program; });
  return found;
}

// The end of a sentence that names another buffer with the bytes, if there is one.
std::string Buffers::other_buffer(int chip, const L1Bytes& bytes, const Buffer& buffer) const {
  for (const std::size_t number : buffers_at(chip, bytes)) {
    const Buffer& other = chips_[index(chip)].buffers[number];
    const bool is_there =
        other.allocation.first_program <= kernels_.program(chip) && !other.freed_at;
    if (&other != &buffer && is_there) {
      return fmt::format(", and now the bytes are those of buffer '{}'", other.allocation.name);
    }
  }
  return "";
}

// --- uses ---------------------------------------------------------------------------------------

Buffers::Buffer* Buffers::checked(const KernelWatch& kernel, int chip, const Use& use) {
  const std::vector<std::size_t> buffers = buffers_at(chip, use.bytes);
  if (buffers.empty()) return nullptr;
  Buffer* known = nullptr;
  for (const std::size_t number : buffers) {
    Buffer& buffer = chips_[index(chip)].buffers[number];
    if (kernels_.knows_program(kernel, chip, buffer.allocation.first_program)) known = &buffer;
  }
  if (known != nullptr && !known->freed_at) return known;
  const std::string what =
      fmt::format("{} of chip {} at {} ns", described(use), chip, records_.now().ns());
  if (known == nullptr) {
    const Buffer& buffer = chips_[index(chip)].buffers[buffers.front()];
    kernel.fail(
        Hazard::buffer_not_there,
        "{}, without proof that buffer '{}' exists, which comes with program {} of that chip{}; "
        "use an address after a word from its chip, or after the host has waited for the buffer",
        what, buffer.allocation.name, buffer.allocation.first_program,
        other_buffer(chip, use.bytes, buffer));
  }
  kernel.fail(Hazard::buffer_freed,
              "{}, which buffer '{}' had until it was freed at {} ns{}; free a buffer after its "
              "chip has seen all accesses by other chips",
              what, known->allocation.name, known->freed_at->ns(),
              other_buffer(chip, use.bytes, *known));
}

void Buffers::check_own(const KernelWatch& kernel, const Use& use) const {
  const int chip = kernel.config().chip;
  const Buffer* last = nullptr;
  for (const std::size_t number : buffers_at(chip, use.bytes)) {
    last = &chips_[index(chip)].buffers[number];
    const Allocation& allocation = last->allocation;
    const int program = kernel.program();
    if (allocation.first_program <= program && program < allocation.end_program) return;
  }
  if (last == nullptr) return;
  const bool is_freed = last->allocation.end_program <= kernel.program();
  kernel.fail(is_freed ? Hazard::buffer_freed : Hazard::buffer_not_there,
              "{} at {} ns in program {}, and buffer '{}' {} program {} of this chip",
              described(use), records_.now().ns(), kernel.program(), last->allocation.name,
              is_freed ? "is freed before" : "comes with",
              is_freed ? last->allocation.end_program : last->allocation.first_program);
}

void Buffers::send(const KernelWatch& kernel, int chip, const Use& use, const Arrived& arrival) {
  Buffer* const buffer = checked(kernel, chip, use);
  if (buffer == nullptr) return;
  buffer->sent[arrival.stream] = {&kernel, described(use), records_.now(),
                                  use.bytes.end() + arrival.shift};
}

void Buffers::change_word(const KernelWatch& kernel, int chip, const Use& use, const Stamp& stamp) {
  Buffer* const buffer = checked(kernel, chip, use);
  if (buffer == nullptr) return;
  const L1Bytes& word = use.bytes;
  buffer->changed[stamp.place] = {&kernel,
                                  fmt::format("{} its word at offset {} of tile ({}, {})", use.verb,
                                              word.offset, word.tile.x, word.tile.y),
                                  records_.now(), 0, stamp};
}

// The program sets the word at its start, overwriting the change.
void Buffers::check_word_at_start(const KernelWatch& kernel, int chip, const L1Bytes& word) const {
  const std::vector<WordAtStart>& words = chips_[index(chip)].words_at_start;
  if (words.empty()) return;
  const int memory = records_.memory_of(chip, word.tile);
  for (const WordAtStart& at : words) {
    if (at.memory != memory || at.offset != word.offset) continue;
    if (at.generation != kernel.config().generation) continue;
    if (kernels_.knows_program(kernel, chip, at.program)) continue;
    kernel.fail(Hazard::missing_handshake,
                "changes the word at offset {} of core ({}, {}) of chip {}, without proof that the "
                "same program, which sets it first, has started there; add a handshake first",
                word.offset, word.tile.x, word.tile.y, chip);
  }
}

// --- the end of a buffer ------------------------------------------------------------------------

void Buffers::programs_over(int chip, int programs) {
  for (Buffer& buffer : chips_[index(chip)].buffers) {
    if (!buffer.freed_at && buffer.allocation.end_program <= programs) free(chip, buffer);
  }
}

void Buffers::free(int chip, Buffer& buffer) {
  buffer.freed_at = records_.now();
  const Knowledge& known = kernels_.known_at_end(chip);
  const auto check = [&](const Access& access, bool is_known) {
    if (is_known) return;
    throw HazardError(Hazard::buffer_freed, access.kernel->name(),
                      fmt::format("{} {} of chip {}, sent at {} ns; buffer '{}' is freed there at "
                                  "{} ns by programs without proof that this has been done; free a "
                                  "buffer after its chip has seen all accesses by other chips",
                                  name_of(*access.kernel), access.what, chip, access.at.ns(),
                                  buffer.allocation.name, buffer.freed_at->ns()));
  };
  for (const auto& [stream, access] : buffer.sent) {
    check(access, known.arrivals.at(stream) >= access.position);
  }
  for (const auto& [place, access] : buffer.changed) {
    check(access, known.clocks.at(place) >= access.stamp.clock);
  }
}

}  // namespace towpath::tenstorrent
