// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace towpath::noc {

// Bytes of a tile's L1 or of a DRAM group, zero until written. Pages are allocated on first write,
// so that gigabytes of DRAM cost only the used part. A page is found by two indices, because every
// loaded or stored flit looks one up.
class Memory {
 public:
  explicit Memory(std::uint64_t size_bytes) : size_bytes_(size_bytes) {}

  std::uint64_t size_bytes() const { return size_bytes_; }
  // The caller must check that the range is inside the memory.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  void write(std::uint64_t offset, std::span<const std::byte> from);
  std::uint32_t load_word(std::uint64_t offset) const;
  void store_word(std::uint64_t offset, std::uint32_t value) {
    write(offset, std::as_bytes(std::span(&value, 1)));
  }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  static constexpr std::uint64_t kPagesPerTable = 512;
  using Page = std::array<std::byte, kPageBytes>;
  using PageTable = std::array<std::unique_ptr<Page>, kPagesPerTable>;

  // Null if the page has not been written.
  const Page* page_at(std::uint64_t offset) const;
  Page& page_for_write(std::uint64_t offset);

  std::uint64_t size_bytes_;
  std::vector<std::unique_ptr<PageTable>> tables_;  // grows to the highest that is written
};

}  // namespace towpath::noc
