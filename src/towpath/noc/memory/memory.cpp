// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/memory/memory.hpp"

#include <algorithm>
#include <cstring>

namespace towpath::noc {

const Memory::Page* Memory::page_at(std::uint64_t offset) const {
  const std::uint64_t number = offset / kPageBytes;
  const std::uint64_t table = number / kPagesPerTable;
  if (table >= tables_.size() || tables_[table] == nullptr) return nullptr;
  return (*tables_[table])[number % kPagesPerTable].get();
}

Memory::Page& Memory::page_for_write(std::uint64_t offset) {
  const std::uint64_t number = offset / kPageBytes;
  const std::uint64_t table = number / kPagesPerTable;
  if (table >= tables_.size()) tables_.resize(table + 1);
  if (tables_[table] == nullptr) tables_[table] = std::make_unique<PageTable>();
  std::unique_ptr<Page>& page = (*tables_[table])[number % kPagesPerTable];
  if (page == nullptr) page = std::make_unique<Page>();
  return *page;
}

void Memory::read(std::uint64_t offset, std::span<std::byte> to) const {
  for (std::size_t done = 0; done < to.size();) {
    const std::uint64_t at = offset + done;
    const std::size_t size = std::min<std::size_t>(to.size() - done, kPageBytes - at % kPageBytes);
    const Page* page = page_at(at);
    if (page == nullptr) {
      std::memset(to.data() + done, 0, size);
    } else {
      std::memcpy(to.data() + done, page->data() + at % kPageBytes, size);
    }
    done += size;
  }
}

void Memory::write(std::uint64_t offset, std::span<const std::byte> from) {
  for (std::size_t done = 0; done < from.size();) {
    const std::uint64_t at = offset + done;
    const std::size_t size =
        std::min<std::size_t>(from.size() - done, kPageBytes - at % kPageBytes);
    std::memcpy(page_for_write(at).data() + at % kPageBytes, from.data() + done, size);
    done += size;
  }
}

std::uint32_t Memory::load_word(std::uint64_t offset) const {
  std::uint32_t value = 0;
  read(offset, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace towpath::noc
