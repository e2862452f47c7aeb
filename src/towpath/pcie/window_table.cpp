// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/window_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/pcie/noc_way.hpp"

namespace towpath::pcie {

namespace {

std::string size_text(std::uint64_t size_bytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  if (size_bytes % kGiB == 0 && size_bytes > 0) return fmt::format("{} GiB", size_bytes / kGiB);
  if (size_bytes % kMiB == 0 && size_bytes > 0) return fmt::format("{} MiB", size_bytes / kMiB);
  return fmt::format("{} bytes", size_bytes);
}

}  // namespace

WindowTable::WindowTable(std::shared_ptr<const machine::Chip> chip) : chip_(std::move(chip)) {
  if (!chip_->has_host_link()) {
    throw std::invalid_argument(fmt::format("chip '{}' has no host link", chip_->name));
  }
  for (const machine::WindowSize& size : chip_->pcie.windows) {
    for (int n = size.reserved; n < size.count; ++n) {
      places_.emplace_back().window.size_bytes = size.size_bytes;
    }
  }
}

std::string WindowTable::sizes() const {
  std::string text;
  for (const machine::WindowSize& size : chip_->pcie.windows) {
    text += (text.empty() ? "" : ", ") + size_text(size.size_bytes);
  }
  return text;
}

WindowNumber WindowTable::allocate(std::uint64_t size_bytes) {
  bool is_known = false;
  for (std::size_t number = 0; number < places_.size(); ++number) {
    if (places_[number].window.size_bytes != size_bytes) continue;
    is_known = true;
    if (places_[number].is_taken) continue;
    places_[number].is_taken = true;
    return static_cast<WindowNumber>(number);
  }
  if (is_known) {
    throw std::invalid_argument(fmt::format("all windows of {} of {} are in use; free one first",
                                            size_text(size_bytes), chip_->name));
  }
  throw std::invalid_argument(fmt::format("{} has no windows of {}; it has windows of {}",
                                          chip_->name, size_text(size_bytes), sizes()));
}

const Window& WindowTable::window(WindowNumber number) const {
  if (number < 0 || static_cast<std::size_t>(number) >= places_.size() ||
      !places_[static_cast<std::size_t>(number)].is_taken) {
    throw std::invalid_argument(
        fmt::format("window {} of {} is not allocated", number, chip_->name));
  }
  return places_[static_cast<std::size_t>(number)].window;
}

void WindowTable::configure(WindowNumber number, machine::Coordinate tile, std::uint64_t address,
                            Ordering ordering, Mapping mapping) {
  const std::uint64_t size_bytes = window(number).size_bytes;
  const std::uint64_t memory = memory_bytes(*chip_, tile);
  if (address >= memory) {
    throw std::invalid_argument(
        fmt::format("a window at address {} of ({}, {}) is beyond its memory, which has {} bytes",
                    address, tile.x, tile.y, memory));
  }
  Place& place = places_[static_cast<std::size_t>(number)];
  place.is_configured = true;
  place.window = {size_bytes, tile, address - address % size_bytes, ordering, mapping};
}

void WindowTable::free(WindowNumber number) {
  const std::uint64_t size_bytes = window(number).size_bytes;
  Place& place = places_[static_cast<std::size_t>(number)];
  place = Place();
  place.window.size_bytes = size_bytes;
}

std::optional<WindowNumber> WindowTable::find(machine::Coordinate tile,
                                              std::uint64_t address) const {
  for (std::size_t number = 0; number < places_.size(); ++number) {
    const Place& place = places_[number];
    if (place.is_configured && place.window.holds(tile, address)) {
      return static_cast<WindowNumber>(number);
    }
  }
  return std::nullopt;
}

int WindowTable::available(std::uint64_t size_bytes) const {
  return static_cast<int>(std::ranges::count_if(places_, [&](const Place& place) {
    return !place.is_taken && place.window.size_bytes == size_bytes;
  }));
}

}  // namespace towpath::pcie
