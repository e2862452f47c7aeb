// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/device/data_movement_core.hpp"
#include "towpath/tenstorrent/device/hazards.hpp"

// Lifetimes of buffers. Kernels of a buffer's own chip are sure of it, because programs of a chip
// run one after the other. A kernel of another chip must know that a program has begun there for
// which the buffer is there; and the chip, when it frees it, that all that was sent to it has
// arrived.

namespace towpath::tenstorrent {

// --- declaring ----------------------------------------------------------------------------------

// Tiles of a DRAM group have one memory.
int HazardMonitor::memory_of(int chip, machine::Coordinate tile) const {
  const machine::Chip& on = *cluster_.chips[index(chip)].chip;
  const int group = on.tile(tile).dram_group;
  return on.number_of(group < 0 ? tile : on.dram_groups[index(group)].front());
}

void HazardMonitor::add_allocation(int chip, const Allocation& allocation) {
  ChipState& state = chips_[index(chip)];
  for (const noc::Address& place : allocation.places) {
    state.buffer_parts[memory_of(chip, place.tile)].push_back(
        {place.offset, place.offset + allocation.size_bytes, state.buffers.size()});
  }
  state.buffers.push_back({.allocation = allocation});
}

void HazardMonitor::add_word_at_start(int chip, int program, int generation,
                                      const std::vector<machine::Coordinate>& cores,
                                      std::uint64_t offset) {
  for (const machine::Coordinate core : cores) {
    chips_[index(chip)].words_at_start.push_back(
        {program, generation, memory_of(chip, core), offset});
  }
}

// --- what is known ------------------------------------------------------------------------------

Time HazardMonitor::now() const { return chips_.front().network->simulation().now(); }

// Whether a kernel knows that a program of a chip has begun, or one after it.
bool HazardMonitor::knows_program(const KernelWatch& kernel, int chip, int program) const {
  return program == 0 || std::ranges::any_of(kernels_, [&](const auto& other) {
           return other->config_.chip == chip && other->program_ >= program &&
                  other->state_ != KernelWatch::State::to_start &&
                  kernel.learner_.knows(other->begin_);
         });
}

// In the order of their first programs.
std::vector<std::size_t> HazardMonitor::buffers_at(int chip, const Use& use) const {
  const ChipState& state = chips_[index(chip)];
  std::vector<std::size_t> found;
  const machine::Chip& on = *cluster_.chips[index(chip)].chip;
  if (state.buffers.empty() || !on.holds(use.tile)) return found;
  const auto parts = state.buffer_parts.find(memory_of(chip, use.tile));
  if (parts == state.buffer_parts.end()) return found;
  for (const BufferPart& part : parts->second) {
    if (part.first < use.offset + use.size_bytes && use.offset < part.end) {
      found.push_back(part.buffer);
    }
  }
  std::ranges::stable_sort(found, {}, [&](std::size_t buffer) {
    return state.buffers[buffer].allocation.first_program;
  });
  return found;
}

// ", and are buffer 'b's", if the bytes have another one now.
std::string HazardMonitor::other_buffer(int chip, const Use& use, const Buffer& buffer) const {
  const ChipState& state = chips_[index(chip)];
  for (const std::size_t number : buffers_at(chip, use)) {
    const Buffer& other = state.buffers[number];
    const bool is_there = other.allocation.first_program <= state.program && !other.freed_at;
    if (&other != &buffer && is_there) {
      return fmt::format(", and now the bytes are those of buffer '{}'", other.allocation.name);
    }
  }
  return "";
}

// --- checks -------------------------------------------------------------------------------------

HazardMonitor::Buffer* HazardMonitor::buffer_for(const KernelWatch& kernel, int chip,
                                                 const Use& use) {
  ChipState& state = chips_[index(chip)];
  const std::vector<std::size_t> buffers = buffers_at(chip, use);
  if (buffers.empty()) return nullptr;
  Buffer* known = nullptr;
  for (const std::size_t number : buffers) {
    Buffer& buffer = state.buffers[number];
    if (knows_program(kernel, chip, buffer.allocation.first_program)) known = &buffer;
  }
  const auto where = [&] {
    return fmt::format("{}: {} bytes {} to {} of tile ({}, {}) of chip {} at {} ns", kernel.where(),
                       use.verb, use.offset, use.offset + use.size_bytes - 1, use.tile.x,
                       use.tile.y, chip, now().ns());
  };
  if (known == nullptr) {
    const Buffer& buffer = state.buffers[buffers.front()];
    throw HazardError(
        Hazard::buffer_not_there, kernel.name(),
        fmt::format("{}, and cannot know that buffer '{}' is there, which comes with program {} of "
                    "that chip{}; an address is used when its chip has said so, or when the host "
                    "has waited for the buffer",
                    where(), buffer.allocation.name, buffer.allocation.first_program,
                    other_buffer(chip, use, buffer)));
  }
  if (known->freed_at) {
    throw HazardError(
        Hazard::buffer_freed, kernel.name(),
        fmt::format("{}, which buffer '{}' had until it was freed at {} ns{}; a buffer is freed "
                    "when its chip has seen all that others do to it",
                    where(), known->allocation.name, known->freed_at->ns(),
                    other_buffer(chip, use, *known)));
  }
  return known;
}

// A kernel of the buffer's chip; it runs as long as its program.
void HazardMonitor::check_own_buffer(const KernelWatch& kernel, const Use& use) {
  const int chip = kernel.config_.chip;
  const ChipState& state = chips_[index(chip)];
  if (state.buffers.empty()) return;
  const Buffer* last = nullptr;
  for (const std::size_t number : buffers_at(chip, use)) {
    last = &state.buffers[number];
    const Allocation& allocation = last->allocation;
    const int program = kernel.program_;
    if (allocation.first_program <= program && program < allocation.end_program) return;
  }
  if (last == nullptr) return;
  const bool is_freed = last->allocation.end_program <= kernel.program_;
  throw HazardError(
      is_freed ? Hazard::buffer_freed : Hazard::buffer_not_there, kernel.name(),
      fmt::format("{}: {} bytes {} to {} of tile ({}, {}) at {} ns in program {}, and buffer '{}' "
                  "{} program {} of this chip",
                  kernel.where(), use.verb, use.offset, use.offset + use.size_bytes - 1, use.tile.x,
                  use.tile.y, now().ns(), kernel.program_, last->allocation.name,
                  is_freed ? "is freed before" : "comes with",
                  is_freed ? last->allocation.end_program : last->allocation.first_program));
}

void HazardMonitor::record(Buffer* buffer, const KernelWatch& kernel, const Use& use,
                           const Arrived& arrived) {
  if (buffer == nullptr) return;
  Buffer::Access& last = buffer->sent[arrived.stream];
  last = {&kernel, "", now(), use.offset + use.size_bytes + arrived.shift};
  last.what = fmt::format("{} bytes {} to {} of tile ({}, {})", use.verb, use.offset,
                          use.offset + use.size_bytes - 1, use.tile.x, use.tile.y);
}

void HazardMonitor::record(Buffer* buffer, const KernelWatch& kernel, const Use& use,
                           const Stamp& stamp) {
  if (buffer == nullptr) return;
  buffer->changed[stamp.place] = {&kernel,
                                  fmt::format("{} its word at offset {} of tile ({}, {})", use.verb,
                                              use.offset, use.tile.x, use.tile.y),
                                  now(), 0, stamp};
}

// The program sets the word, also if it was changed before.
void HazardMonitor::check_word_at_start(const KernelWatch& kernel, int chip,
                                        const Errand::Word& word) {
  const std::vector<WordAtStart>& words = chips_[index(chip)].words_at_start;
  if (words.empty()) return;
  const int memory = memory_of(chip, word.tile);
  for (const WordAtStart& at : words) {
    if (at.tile != memory || at.offset != word.offset) continue;
    if (at.generation != kernel.config_.generation) continue;
    if (knows_program(kernel, chip, at.program)) continue;
    throw HazardError(
        Hazard::missing_handshake, kernel.name(),
        fmt::format(
            "{}: changes the word at offset {} of core ({}, {}) of chip {}, and cannot know "
            "that the kernels of the same program have started there, which sets it first; "
            "a handshake comes first",
            kernel.where(), word.offset, word.tile.x, word.tile.y, chip));
  }
}

void HazardMonitor::check_errand(const KernelWatch& kernel, const Errand& errand,
                                 const std::vector<Arrived>& arrivals, const Stamp& stamp) {
  const bool is_own = errand.chip == kernel.config_.chip;
  for (std::size_t i = 0; i < errand.bytes.size(); ++i) {
    const Errand::Bytes& bytes = errand.bytes[i];
    const Use use{"writes", bytes.tile, bytes.offset, bytes.size_bytes};
    if (is_own) {
      check_own_buffer(kernel, use);
    } else {
      record(buffer_for(kernel, errand.chip, use), kernel, use, arrivals[i]);
    }
  }
  if (!errand.word) return;
  const Errand::Word& word = *errand.word;
  const Use use{word.is_increment ? "increments" : "sets", word.tile, word.offset, noc::kWordBytes};
  if (is_own) return check_own_buffer(kernel, use);
  record(buffer_for(kernel, errand.chip, use), kernel, use, stamp);
  check_word_at_start(kernel, errand.chip, word);
}

// --- freeing ------------------------------------------------------------------------------------

void HazardMonitor::programs_over(int chip, int programs) {
  for (Buffer& buffer : chips_[index(chip)].buffers) {
    if (!buffer.freed_at && buffer.allocation.end_program <= programs) free(chip, buffer);
  }
}

void HazardMonitor::free(int chip, Buffer& buffer) {
  buffer.freed_at = now();
  const Knowledge& known = chips_[index(chip)].ended;
  const auto check = [&](const Buffer::Access& access, bool is_known) {
    if (is_known) return;
    throw HazardError(
        Hazard::buffer_freed, access.kernel->name(),
        fmt::format("{} {} of chip {}, sent at {} ns; buffer '{}' is freed there at {} ns by "
                    "programs that cannot know that this has been done; a buffer is freed when its "
                    "chip has seen all that others do to it",
                    name_of(*access.kernel), access.what, chip, access.at.ns(),
                    buffer.allocation.name, buffer.freed_at->ns()));
  };
  for (const auto& [stream, access] : buffer.sent) {
    check(access, known.arrived(stream) >= access.position);
  }
  for (const auto& [place, access] : buffer.changed) {
    check(access, known.clock(place) >= access.stamp.clock);
  }
}

}  // namespace towpath::tenstorrent
