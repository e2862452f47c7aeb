// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/noc_reads.hpp"

#include <algorithm>
#include <utility>

#include "towpath/pcie/noc_writes.hpp"
#include "towpath/sim/hardware_priority.hpp"

namespace towpath::pcie {

NocReads::NocReads(noc::ChipNetwork& network, const Way& way,
                   std::function<void(std::uint64_t size_bytes)> came)
    : network_(network),
      way_(way),
      came_(std::move(came)),
      reads_(static_cast<std::size_t>(way.places)) {
  for (std::size_t place = reads_.size(); place > 0; --place) free_.push_back(place - 1);
}

void NocReads::wait_until_at_most(int under_way) {
  sim::Simulation& simulation = network_.simulation();
  while (way_.places - static_cast<int>(free_.size()) > under_way) {
    waiting_ = simulation.current();
    simulation.suspend("data of a read through the PCIe tile");
  }
  waiting_ = nullptr;
}

void NocReads::finish() { wait_until_at_most(0); }

void NocReads::begin(noc::Address from, std::uint64_t size_bytes, std::span<std::byte> to,
                     std::optional<Time> on_noc) {
  wait_until_at_most(way_.places - 1);
  const std::uint64_t place = free_.back();
  free_.pop_back();
  reads_[place] = {from, size_bytes, to};
  leaving_.push_back(place);
  sim::Simulation& simulation = network_.simulation();
  simulation.at(on_noc.value_or(simulation.now() + way_.before), &NocReads::issue, this,
                sim::kHardwarePriority);
}

void NocReads::issue(void* context) {
  auto& self = *static_cast<NocReads*>(context);
  const std::uint64_t place = self.leaving_.front();
  self.leaving_.pop_front();
  const Read& read = self.reads_[place];
  self.network_.issue(
      tile_request(self.network_.chip(), noc::RequestKind::read, read.from, read.size_bytes),
      {.owner = self, .number = place, .data = {}, .carries_data = !read.to.empty()});
}

void NocReads::request_completed(std::uint64_t number, std::span<const std::byte> data) {
  std::ranges::copy(data, reads_[number].to.begin());
  returning_.push_back(number);
  network_.simulation().after(way_.after, &NocReads::arrived, this, sim::kHardwarePriority);
}

void NocReads::arrived(void* context) {
  auto& self = *static_cast<NocReads*>(context);
  const std::uint64_t place = self.returning_.front();
  self.returning_.pop_front();
  self.free_.push_back(place);
  if (self.came_) self.came_(self.reads_[place].size_bytes);
  if (self.waiting_ != nullptr) self.network_.simulation().wake(*self.waiting_);
}

}  // namespace towpath::pcie
