// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/core/data_movement_core.hpp"

#include <memory>
#include <utility>

namespace towpath::tenstorrent {

using noc::NiuCounters;

NocRequester& DataMovementCore::one_packet(std::string_view call, std::uint64_t size_bytes) {
  NocRequester& requests = this->requests(call);
  requests.check_one_packet(size_bytes);
  return requests;
}

std::uint32_t DataMovementCore::get_arg_val(std::size_t number) {
  begin_call(__func__);
  const std::size_t count = config().runtime_args.size();
  if (number >= count) refuse("there is no runtime argument {}; it has {}", number, count);
  return config().runtime_args[number];
}

std::uint32_t DataMovementCore::get_compile_time_arg_val(std::size_t number) {
  begin_call(__func__);
  const std::size_t count = config().compile_args.size();
  if (number >= count) refuse("there is no compile-time argument {}; it has {}", number, count);
  return config().compile_args[number];
}

std::uint64_t DataMovementCore::get_semaphore(std::size_t id) {
  begin_call(__func__);
  const std::size_t count = config().semaphores.size();
  if (id >= count) refuse("there is no semaphore {}; the program has {}", id, count);
  return config().semaphores[id];
}

std::uint32_t DataMovementCore::load_word(std::uint64_t offset) {
  begin_call(__func__);
  return look(offset);
}

void DataMovementCore::store_word(std::uint64_t offset, std::uint32_t value) {
  begin_call(__func__);
  change(offset, value);
}

void DataMovementCore::load(std::uint64_t offset, std::span<std::byte> to) {
  begin_call(__func__);
  named([&] { network().load(config().core, offset, to); });
  observer().using_bytes(offset, to.size());
}

void DataMovementCore::store(std::uint64_t offset, std::span<const std::byte> from) {
  begin_call(__func__);
  observer().storing(offset, from);
  named([&] { network().store(config().core, offset, from); });
}

// --- reads --------------------------------------------------------------------------------------

// --- writes -------------------------------------------------------------------------------------

// --- transaction ids ----------------------------------------------------------------------------

void DataMovementCore::noc_async_read_one_packet_with_state_with_trid(std::uint64_t from_base,
                                                                      std::uint64_t from_offset,
                                                                      std::uint64_t local_offset,
                                                                      int transaction_id, int noc) {
  NocRequester& requests = this->requests(__func__);
  requests.set_transaction_id(NocRequester::kRead, transaction_id, noc);
  requests.read_with_state(from_base + from_offset, local_offset, {}, noc);
}

void DataMovementCore::noc_async_write_one_packet_with_trid(std::uint64_t local_offset,
                                                            const NocAddress& to,
                                                            std::uint64_t size_bytes,
                                                            int transaction_id,
                                                            const WriteOptions& options) {
  NocRequester& requests = one_packet(__func__, size_bytes);
  requests.set_transaction_id(NocRequester::kWrite, transaction_id, options.noc);
  requests.write({local_offset, size_bytes}, to, options);
}

void DataMovementCore::noc_async_write_one_packet_with_trid_with_state(std::uint64_t local_offset,
                                                                       std::uint64_t to_offset,
                                                                       std::uint64_t size_bytes,
                                                                       int transaction_id,
                                                                       int noc) {
  NocRequester& requests = one_packet(__func__, size_bytes);
  requests.set_transaction_id(NocRequester::kWrite, transaction_id, noc);
  requests.write_with_state(local_offset, to_offset, size_bytes, noc);
}

// --- barriers -----------------------------------------------------------------------------------

void DataMovementCore::noc_async_atomic_barrier(int noc) {
  requests(__func__)
      .wait_for_counts<&NiuCounters::atomic_responses_received,
                       &NiuCounters::atomic_responses_awaited>(noc);
}

void DataMovementCore::noc_async_full_barrier(int noc) {
  noc_async_read_barrier(noc);
  noc_async_writes_flushed(noc);
  noc_async_write_barrier(noc);
  noc_async_atomic_barrier(noc);
  noc_async_posted_writes_flushed(noc);
}

// --- semaphores ---------------------------------------------------------------------------------

void DataMovementCore::noc_semaphore_set(std::uint64_t semaphore, std::uint32_t value) {
  begin_call(__func__);
  change(semaphore, value);
}

void DataMovementCore::noc_semaphore_wait(std::uint64_t semaphore, std::uint32_t value) {
  begin_call(__func__);
  poll_word(semaphore, value, false);
}

void DataMovementCore::noc_semaphore_wait_min(std::uint64_t semaphore, std::uint32_t value) {
  begin_call(__func__);
  poll_word(semaphore, value, true);
}

void DataMovementCore::wait_for_word_min(std::string_view call, std::uint64_t word,
                                         std::uint32_t value) {
  begin_call(call);
  poll_word(word, value, true);
}

void DataMovementCore::wait_for_l1_write(std::string_view call, std::uint64_t word) {
  begin_call(call);
  poll_l1(word);
}

sim::Process& run_kernel(noc::ChipNetwork& network, KernelConfig config, Kernel kernel) {
  auto core = std::make_shared<DataMovementCore>(network, std::move(config));
  std::string name =
      fmt::format("{} on core ({}, {}), NoC {}", core->config().name, core->config().core.x,
                  core->config().core.y, core->config().noc_index);
  return network.simulation().spawn(std::move(name),
                                    [core = std::move(core), kernel = std::move(kernel)] {
                                      core->work_until(core->config().start_cycle);
                                      kernel(*core);
                                    });
}

}  // namespace towpath::tenstorrent
