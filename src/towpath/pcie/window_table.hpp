// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "towpath/machine/chip.hpp"

namespace towpath::pcie {

// Ordering of NoC writes through a window: acknowledged; acknowledged, with a longer wait of the
// next strict write; or posted, without acknowledgement.
enum class Ordering : std::uint8_t { standard, strict, posted };

// The mapping of a window in the host's processor.
enum class Mapping : std::uint8_t { write_combining, uncached };

using WindowNumber = int;

// A range of a tile's memory visible to the host.
struct Window {
  std::uint64_t size_bytes = 0;
  machine::Coordinate tile;
  std::uint64_t address = 0;  // a multiple of its size
  Ordering ordering = Ordering::standard;
  Mapping mapping = Mapping::write_combining;

  bool holds(machine::Coordinate at, std::uint64_t byte) const {
    return tile == at && byte >= address && byte - address < size_bytes;
  }
};

// The windows of one chip: their sizes, use and targets.
class WindowTable {
 public:
  explicit WindowTable(std::shared_ptr<const machine::Chip> chip);

  // Takes a free window of exactly that size. Throws std::invalid_argument if the chip has no
  // windows of that size (with the available sizes) or all are in use.
  WindowNumber allocate(std::uint64_t size_bytes);
  // Points a window at the range of memory that contains `address`. Throws std::invalid_argument if
  // there is no such window, or no memory.
  void configure(WindowNumber number, machine::Coordinate tile, std::uint64_t address,
                 Ordering ordering, Mapping mapping);
  void free(WindowNumber number);

  const Window& window(WindowNumber number) const;
  // The window that contains a byte of a tile's memory, if any.
  std::optional<WindowNumber> find(machine::Coordinate tile, std::uint64_t address) const;
  int available(std::uint64_t size_bytes) const;

 private:
  struct Place {
    bool is_taken = false;
    bool is_configured = false;
    Window window;
  };
  std::string sizes() const;

  std::shared_ptr<const machine::Chip> chip_;
  std::vector<Place> places_;  // without the driver's
};

}  // namespace towpath::pcie
