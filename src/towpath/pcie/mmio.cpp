// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/mmio.hpp"

#include <algorithm>
#include <optional>

namespace towpath::pcie {

namespace {
constexpr std::uint64_t kWordBytes = 4;
}  // namespace

Account Mmio::account_of_call() const {
  Account account(ends_.simulation, Mechanism::mmio);
  account.spend("call", ends_.host.core.call_time);
  return account;
}

Piece Mmio::next_piece(Account& account, const TileRange& from, std::uint64_t size_bytes,
                       const TransferOptions& options) {
  const auto& [tile, address] = from;
  std::optional<WindowNumber> number = windows_.find(tile, address);
  const bool is_dynamic = !number.has_value();
  if (is_dynamic) {
    number = windows_.allocate(options.window_bytes != 0 ? options.window_bytes
                                                         : ends_.chip.pcie.dynamic_window_bytes);
    windows_.configure(*number, tile, address, options.ordering, options.mapping);
    account.spend("allocating and configuring windows", ends_.host.driver.window_time);
    ++account.transfer.windows;
  }
  const Window& window = windows_.window(*number);
  const std::uint64_t left = window.size_bytes - (address - window.address);
  const Piece piece{tile, address, std::min(size_bytes, left), window.ordering, window.mapping};
  if (is_dynamic) windows_.free(*number);
  return piece;
}

// --- registers -----------------------------------------------------------------------------------

Transfer Mmio::write_registers(std::uint64_t size_bytes) {
  const auto store = static_cast<std::uint64_t>(ends_.host.core.uncached_store_bytes);
  Account account(ends_.simulation, Mechanism::mmio);
  account.spend("stores to registers",
                ends_.host.core.uncached_store_time *
                    static_cast<std::int64_t>((size_bytes + store - 1) / store));
  return account.finish(ends_.simulation);
}

// A round trip to the PCIe tile.
Transfer Mmio::read_register() {
  Account account(ends_.simulation, Mechanism::mmio);
  account.spend("root complex and link", ends_.host.link.read_time);
  account.spend("PCIe tile", ends_.chip.pcie.tile_time);
  account.transfer.accesses = 1;
  return account.finish(ends_.simulation);
}

// --- writes --------------------------------------------------------------------------------------

Transfer Mmio::write(const Piece& piece, std::span<const std::byte> data) {
  Account account = account_of_call();
  write_piece(account, piece, data);
  return account.finish(ends_.simulation);
}

Transfer Mmio::write(std::span<const std::byte> data, TileRange to,
                     const TransferOptions& options) {
  Account account = account_of_call();
  while (!data.empty()) {
    const Piece piece = next_piece(account, to, data.size(), options);
    write_piece(account, piece, data.first(piece.size_bytes));
    data = data.subspan(piece.size_bytes);
    to.address += piece.size_bytes;
  }
  return account.finish(ends_.simulation);
}

// A copy of whole words reads a word before a partial write.
void Mmio::write_piece(Account& account, const Piece& piece, std::span<const std::byte> data) {
  if (!ends_.host.core.copies_words) return path_->write(account, piece, data);
  Piece rest = piece;
  while (rest.size_bytes > 0) {
    Piece run = rest;
    const std::uint64_t whole = rest.size_bytes - rest.size_bytes % kWordBytes;
    const bool is_partial = rest.address % kWordBytes != 0 || whole == 0;
    run.size_bytes =
        is_partial ? std::min(rest.size_bytes, kWordBytes - rest.address % kWordBytes) : whole;
    if (is_partial) load(account, run, {}, {.unit = kWordBytes, .phase = run.address});
    path_->write(account, run, data.first(run.size_bytes));
    data = data.subspan(run.size_bytes);
    rest.address += run.size_bytes;
    rest.size_bytes -= run.size_bytes;
  }
}

// --- reads ---------------------------------------------------------------------------------------

Transfer Mmio::read(const Piece& piece, std::span<std::byte> to) {
  Account account = account_of_call();
  read_piece(account, piece, to, {});
  return account.finish(ends_.simulation);
}

Transfer Mmio::read(std::span<std::byte> to, TileRange from, const TransferOptions& options) {
  Account account = account_of_call();
  while (!to.empty()) {
    const Piece piece = next_piece(account, from, to.size(), options);
    read_piece(account, piece, to.first(piece.size_bytes), options);
    to = to.subspan(piece.size_bytes);
    from.address += piece.size_bytes;
  }
  return account.finish(ends_.simulation);
}

void Mmio::load(Account& account, const Piece& piece, std::span<std::byte> to, const Loads& loads) {
  account.transfer.accesses += loads.count(piece);
  path_->read(account, piece, to, loads);
}

Loads Mmio::loads_of(const Piece& piece, const TransferOptions& options) const {
  const machine::HostCoreParameters& core = ends_.host.core;
  if (options.load == Load::stream) {
    // Reads of lines overlap: a line is requested when another has arrived.
    if (piece.mapping == Mapping::write_combining) {
      return {kLineBytes, piece.address, false, core.stream_loads_outstanding};
    }
    return {static_cast<std::uint64_t>(core.stream_load_bytes), piece.address};
  }
  const auto load = static_cast<std::uint64_t>(core.load_bytes);
  if (core.copies_words) return {load, piece.address};
  // Loads are split at the buffer's loads, and again at the window's lines.
  return {load, options.misalignment_bytes,
          options.misalignment_bytes % load != piece.address % load};
}

}  // namespace towpath::pcie
