// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/transfer_table.hpp"

#include "towpath/base/invariant.hpp"

namespace towpath::collective {

TransferTable::TransferTable(const Chunking& chunking)
    : iterations_(chunking.iterations()), chunks_per_transfer_(chunking.chunks_per_transfer()) {
  for (const std::size_t is_last : {0, 1}) {
    const std::uint64_t iteration = is_last != 0 ? iterations_ - 1 : 0;
    for (std::uint32_t chunks = 0; chunks <= chunks_per_transfer_; ++chunks) {
      const std::uint64_t elements = chunking.nominal(chunks, iteration);
      local_[is_last].push_back({1, {Slice{0, elements, 0}}});
      Transfer& transfer = sliced_[is_last].emplace_back();
      transfer.slices = chunking.slices(elements);
      TOWPATH_CHECK(transfer.slices <= transfer.slice.size(), "a transfer in {} slices",
                    transfer.slices);
      for (std::uint32_t i = 0; i < transfer.slices; ++i) {
        transfer.slice[i] = chunking.slice(elements, i);
      }
    }
  }
}

}  // namespace towpath::collective
