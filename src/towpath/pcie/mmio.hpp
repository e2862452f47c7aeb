// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "towpath/pcie/chip_path.hpp"
#include "towpath/pcie/window_table.hpp"

namespace towpath::pcie {

// The processor's loads from a window: a plain copy, or streaming loads, which fetch several lines
// of write-combining memory at once.
enum class Load : std::uint8_t { copy, stream };

// Options for the temporary windows of transfers, and for writes by DMA.
struct TransferOptions {
  Ordering ordering = Ordering::standard;
  Mapping mapping = Mapping::write_combining;
  std::uint64_t window_bytes = 0;  // 0: the driver's default size
  Load load = Load::copy;
  // Offset of the host's buffer from a line boundary: a copy's loads are split at the buffer's
  // lines, and a load across a line of the window takes two round trips.
  std::uint64_t misalignment_bytes = 0;
};

// A range of a tile's memory.
struct TileRange {
  machine::Coordinate tile;
  std::uint64_t address = 0;
};

// Transfers by the host's processor, with stores to windows and loads from them.
class Mmio {
 public:
  Mmio(const LinkEnds& ends, WindowTable& windows, ChipPath* const& path)
      : ends_(ends), windows_(windows), path_(path) {}

  // Through configured windows, or dynamic ones if there are none.
  Transfer write(std::span<const std::byte> data, TileRange to, const TransferOptions& options);
  Transfer read(std::span<std::byte> to, TileRange from, const TransferOptions& options);
  // Through a window that the caller describes.
  Transfer write(const Piece& piece, std::span<const std::byte> data);
  Transfer read(const Piece& piece, std::span<std::byte> to);
  // Of registers of the PCIe tile.
  Transfer write_registers(std::uint64_t size_bytes);
  Transfer read_register();

 private:
  Account account_of_call() const;
  Piece next_piece(Account& account, const TileRange& from, std::uint64_t size_bytes,
                   const TransferOptions& options);
  void write_piece(Account& account, const Piece& piece, std::span<const std::byte> data);
  void read_piece(Account& account, const Piece& piece, std::span<std::byte> to,
                  const TransferOptions& options) {
    load(account, piece, ends_.carries_data ? to : std::span<std::byte>(),
         loads_of(piece, options));
  }
  void load(Account& account, const Piece& piece, std::span<std::byte> to, const Loads& loads);
  Loads loads_of(const Piece& piece, const TransferOptions& options) const;

  LinkEnds ends_;
  WindowTable& windows_;
  ChipPath* const& path_;  // the link's
};

}  // namespace towpath::pcie
