// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/memory.hpp"

#include <algorithm>
#include <cstring>

namespace towpath::noc {

void Memory::read(std::uint64_t offset, std::span<std::byte> to) const {
  for (std::size_t done = 0; done < to.size();) {
    const std::uint64_t at = offset + done;
    const std::size_t size = std::min<std::size_t>(to.size() - done, kPageBytes - at % kPageBytes);
    const auto page = pages_.find(at / kPageBytes);
    if (page == pages_.end()) {
      std::memset(to.data() + done, 0, size);
    } else {
      std::memcpy(to.data() + done, page->second->data() + at % kPageBytes, size);
    }
    done += size;
  }
}

void Memory::write(std::uint64_t offset, std::span<const std::byte> from) {
  for (std::size_t done = 0; done < from.size();) {
    const std::uint64_t at = offset + done;
    const std::size_t size =
        std::min<std::size_t>(from.size() - done, kPageBytes - at % kPageBytes);
    std::unique_ptr<Page>& page = pages_[at / kPageBytes];
    if (page == nullptr) page = std::make_unique<Page>();
    std::memcpy(page->data() + at % kPageBytes, from.data() + done, size);
    done += size;
  }
}

std::uint32_t Memory::load_word(std::uint64_t offset) const {
  std::uint32_t value = 0;
  read(offset, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

void Memory::store_word(std::uint64_t offset, std::uint32_t value) {
  write(offset, std::as_bytes(std::span(&value, 1)));
}

}  // namespace towpath::noc
