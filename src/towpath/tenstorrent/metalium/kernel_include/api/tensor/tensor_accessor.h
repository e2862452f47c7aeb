// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "api/compile_time_args.h"
#include "api/dataflow/addresses.h"

template <std::size_t CTA_OFFSET, std::size_t CRTA_OFFSET = 0>
struct TensorAccessorArgs {
  static constexpr std::uint32_t args_config = get_compile_time_arg_val(CTA_OFFSET);
  static constexpr bool is_dram = (args_config & tensor_accessor::kIsDram) != 0;
  static constexpr std::uint32_t AlignedPageSize = get_compile_time_arg_val(CTA_OFFSET + 1);
  static_assert((args_config & tensor_accessor::kSharded) == 0,
                "TensorAccessor reads interleaved tensors here; this one is sharded");

  constexpr TensorAccessorArgs() = default;
  constexpr explicit TensorAccessorArgs(std::uint32_t) {}
  static constexpr std::uint32_t get_aligned_page_size() { return AlignedPageSize; }
  static constexpr std::uint32_t num_compile_time_args() { return 2; }
  static constexpr std::uint32_t next_compile_time_args_offset() { return CTA_OFFSET + 2; }
  static constexpr std::uint32_t num_common_runtime_args() { return 0; }
  static constexpr std::uint32_t next_common_runtime_args_offset() { return CRTA_OFFSET; }
};

template <typename Args>
class TensorAccessor {
 public:
  static constexpr bool is_dram = Args::is_dram;

  TensorAccessor(const Args&, std::size_t bank_base_address_in,
                 std::uint32_t page_size_in = Args::AlignedPageSize)
      : bank_base_address(static_cast<std::uint32_t>(bank_base_address_in)),
        page_size(page_size_in) {}

  std::uint64_t get_noc_addr(std::uint32_t page_id, std::uint32_t offset = 0,
                             std::uint8_t noc = noc_index) const {
    return towpath_page_address<is_dram>(page_id, aligned(), bank_base_address, offset, noc);
  }
  std::uint32_t get_aligned_page_size() const { return page_size; }

  const std::uint32_t bank_base_address;
  const std::uint32_t page_size;

 private:
  std::uint32_t aligned() const {
    return align_power_of_2(page_size, interleaved_addr_gen::get_allocator_alignment<is_dram>());
  }
};
template <std::size_t Offset, std::size_t Common, typename... Rest>
TensorAccessor(const TensorAccessorArgs<Offset, Common>&, Rest...)
    -> TensorAccessor<TensorAccessorArgs<Offset, Common>>;

// A page of a tensor, and a tensor as its pages, as headers of tt-metal name them.
namespace tensor_accessor {

class Page {
 public:
  Page(std::uint64_t noc_addr, std::uint32_t page_id) : noc_addr_(noc_addr), page_id_(page_id) {}
  std::uint64_t noc_addr() const { return noc_addr_; }
  std::uint32_t page_id() const { return page_id_; }

 private:
  std::uint64_t noc_addr_;
  std::uint32_t page_id_;
};

}  // namespace tensor_accessor

template <typename Accessor>
class PageView {
 public:
  explicit PageView(const Accessor& accessor) : accessor_(accessor) {}
  std::uint64_t get_noc_addr(std::uint32_t page_id, std::uint32_t offset = 0,
                             std::uint8_t noc = noc_index) const {
    return accessor_.get_noc_addr(page_id, offset, noc);
  }

 private:
  const Accessor& accessor_;
};
// Only sharded tensors have shards, and those have no accessor here.
template <typename Accessor>
class ShardView;
