// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/dma.hpp"

#include <algorithm>

namespace towpath::pcie {

// --- channels of the engine ----------------------------------------------------------------------

void Dma::take_channel(Account& account) {
  sim::Simulation& simulation = ends_.simulation;
  simulation.sleep_until(account.now());
  if (channels_free_ > 0) {
    --channels_free_;
    return;
  }
  sim::Process* const self = simulation.current();
  waiting_.push_back(self);
  while (std::ranges::find(waiting_, self) != waiting_.end()) {
    simulation.suspend("a channel of the DMA engine");
  }
  account.spend("waiting for a channel of the DMA engine", simulation.now() - account.now());
}

// Passes the channel to the longest waiting transfer.
void Dma::give_channel() {
  if (waiting_.empty()) {
    ++channels_free_;
    return;
  }
  sim::Process& next = *waiting_.front();
  waiting_.pop_front();
  ends_.simulation.wake(next);
}

// --- parts of a transfer -------------------------------------------------------------------------

Rate Dma::bounce_rate(Direction direction, std::uint64_t size_bytes) const {
  const machine::HostDriverParameters& driver = ends_.host.driver;
  const bool fits = size_bytes + std::min(size_bytes, driver.bounce_bytes) <= driver.cache_bytes;
  if (direction == Direction::to_device) {
    return fits ? driver.bounce_write_rate : driver.bounce_write_rate_uncached;
  }
  return fits ? driver.bounce_read_rate : driver.bounce_read_rate_uncached;
}

Time Dma::copy_time(const Job& job, std::uint64_t size_bytes) const {
  if (!job.bounces) return Time();
  return transfer_time(Bytes(size_bytes), bounce_rate(job.direction, job.size_bytes));
}

// Moves the transfer part by part, and the driver waits for each part.
template <typename MovePart>
Transfer Dma::run(const Job& job, MovePart move_part) {
  constexpr std::string_view kCopy = "copying to or from the bounce buffer";
  const machine::HostDriverParameters& driver = ends_.host.driver;
  const std::uint64_t window = ends_.chip.pcie.dma_window_bytes;
  const std::uint64_t part_max = job.bounces ? std::min(driver.bounce_bytes, window) : window;
  Account account(ends_.simulation, Mechanism::dma);
  account.spend("call", ends_.host.core.call_time);
  take_channel(account);
  for (std::uint64_t at = 0; at < job.size_bytes;) {
    const DmaPart part{{job.address.tile, job.address.offset + at},
                       std::min(part_max, job.size_bytes - at),
                       job.ordering};
    const Time copy = copy_time(job, part.size_bytes);
    if (job.direction == Direction::to_device) account.spend(kCopy, copy);
    account.spend("setting the engine up and noticing its end", driver.dma_time);
    move_part(account, part, at);
    if (job.direction == Direction::from_device) account.spend(kCopy, copy);
    at += part.size_bytes;
  }
  ends_.simulation.sleep_until(account.now());
  give_channel();
  return account.finish(ends_.simulation);
}

Transfer Dma::write(const Job& job, const std::function<std::span<const std::byte>()>& data) {
  return run(job, [&](Account& account, const DmaPart& part, std::uint64_t at) {
    std::span<const std::byte> bytes;
    if (ends_.carries_data) bytes = data().subspan(at, part.size_bytes);
    ends_.simulation.sleep_until(account.now());
    path_->write_by_dma(account, part, bytes);
  });
}

Transfer Dma::read(const Job& job, const std::function<std::span<std::byte>()>& to) {
  return run(job, [&](Account& account, const DmaPart& part, std::uint64_t at) {
    std::span<std::byte> bytes;
    if (ends_.carries_data) bytes = to().subspan(at, part.size_bytes);
    ends_.simulation.sleep_until(account.now());
    path_->read_by_dma(account, part, bytes);
  });
}

}  // namespace towpath::pcie
