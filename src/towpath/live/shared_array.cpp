// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/shared_array.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "towpath/live/connect.hpp"
#include "towpath/transport/remote_memory.hpp"

namespace towpath::live {

namespace {

// Polling interval of a thread that cannot wait in the transport because another thread does.
constexpr std::chrono::microseconds kLookInterval{100};

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

// The offset of whole pages on the symmetric heap, the same on all ranks.
transport::Offset allocate_pages(transport::LiveTransport& transport, std::uint64_t size_bytes) {
  const transport::Offset offset = transport.allocate(size_bytes + page_bytes());
  return (offset + page_bytes() - 1) / page_bytes() * page_bytes();
}

transport::LiveOptions with_heap_for(transport::LiveOptions options, std::uint64_t size_bytes) {
  options.heap_bytes =
      transport::Transport::reserved_bytes(options.ranks) + size_bytes + 2 * page_bytes();
  options.signals = transport::Transport::kReservedSignals;
  return options;
}

void check_place(const std::byte* place, std::uint64_t size_bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  if (size_bytes > 0 && size_bytes % page_bytes() == 0 && address % page_bytes() == 0) return;
  throw std::invalid_argument(
      fmt::format("a shared array has {} bytes; it must have whole pages of {} bytes", size_bytes,
                  page_bytes()));
}

// Also maps the pages of the heap at `place`. An old size of 0 requests a second mapping. When UCX
// is loaded, it replaces mremap by a function that truncates the address to 32 bits.
void show_at(std::byte* place, std::byte* pages, std::uint64_t size_bytes) {
  if (::syscall(SYS_mremap, pages, 0, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) != -1) {
    return;
  }
  throw std::system_error(errno, std::generic_category(), "cannot map a shared array");
}

}  // namespace

SharedArray::SharedArray(transport::LiveOptions options, std::byte* place,
                         std::uint64_t size_bytes) {
  check_place(place, size_bytes);
  transport_ = connect("shm", with_heap_for(options, size_bytes));
  const transport::Offset offset = allocate_pages(*transport_, size_bytes);
  std::memcpy(transport_->data(offset), place, size_bytes);
  show_at(place, transport_->data(offset), size_bytes);
  for (int rank = 0; rank < options.ranks; ++rank) {
    arrays_.push_back(rank == options.rank ? place
                                           : transport_->remote_memory()->reach(rank, offset));
  }
  transport_->barrier(options.timeout);
}

void SharedArray::wait(const std::function<bool()>& holds, Time timeout, int peer,
                       const std::string& what) {
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> limit(timeout.seconds());
  while (!holds()) {
    const std::unique_lock alone(waiting_, std::try_to_lock);
    if (alone.owns_lock()) {
      transport_->block_until(holds, timeout, peer, [&] { return what; });
      return;
    }
    if (std::chrono::steady_clock::now() - begin > limit) {
      throw transport::TransportError(transport::TransportError::Kind::timeout, peer,
                                      fmt::format("rank {} waited {:g} s without success for {}",
                                                  transport_->rank(), timeout.seconds(), what));
    }
    std::this_thread::sleep_for(kLookInterval);
  }
}

}  // namespace towpath::live
