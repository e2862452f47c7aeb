// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/tile_requests.hpp"

#include <algorithm>
#include <utility>

#include "towpath/sim/hardware_priority.hpp"

namespace towpath::pcie {

namespace {
// tt-umd selects NoC 0 and leaves the VC number at its default 0.
constexpr int kNoc = 0;
constexpr int kVc = 0;
}  // namespace

noc::Request tile_request(const machine::Chip& chip, noc::RequestKind kind, noc::Address remote,
                          std::uint64_t size_bytes) {
  noc::Request request;
  request.kind = kind;
  request.noc = kNoc;
  request.core = chip.pcie_tiles.front();
  request.remote = remote;
  request.size_bytes = size_bytes;
  request.vc = kVc;
  request.is_static_vc = chip.pcie.static_vc;
  return request;
}

void NocWrites::arrive(Time when, Write write) {
  coming_.push_back(std::move(write));
  ++waiting_;
  ++unfinished_;
  network_.simulation().at(when, &NocWrites::arrived, this, sim::kHardwarePriority);
}

void NocWrites::arrived(void* context) {
  auto& self = *static_cast<NocWrites*>(context);
  self.arrived_.push_back(std::move(self.coming_.front()));
  self.coming_.pop_front();
  self.issue_soon();
}

// The network does not accept requests during its calls.
void NocWrites::issue_soon() {
  if (is_issue_due_ || arrived_.empty()) return;
  is_issue_due_ = true;
  sim::Simulation& simulation = network_.simulation();
  simulation.at(simulation.now(), &NocWrites::issue, this, sim::kHardwarePriority);
}

bool NocWrites::may_issue(const Write& write) const {
  if (write.waits_for_earlier && under_way_ > 0) return false;
  return write.ordering == Ordering::posted ||
         unacknowledged_ < network_.chip().pcie.writes_outstanding;
}

void NocWrites::issue(void* context) {
  auto& self = *static_cast<NocWrites*>(context);
  self.is_issue_due_ = false;
  while (!self.arrived_.empty() && self.may_issue(self.arrived_.front())) {
    const Write write = std::move(self.arrived_.front());
    self.arrived_.pop_front();
    noc::Request request =
        tile_request(self.network_.chip(), noc::RequestKind::write, write.to, write.size_bytes);
    request.is_posted = write.ordering == Ordering::posted;
    ++self.under_way_;
    if (!request.is_posted) ++self.unacknowledged_;
    self.network_.issue(request, {.owner = self,
                                  .number = static_cast<std::uint64_t>(write.ordering),
                                  .data = write.data,
                                  .carries_data = !write.data.empty()});
  }
}

void NocWrites::request_left(std::uint64_t) {
  --waiting_;
  changed_();
}

void NocWrites::request_completed(std::uint64_t number, std::span<const std::byte>) {
  const auto ordering = static_cast<Ordering>(number);
  if (ordering == Ordering::strict) {
    network_.simulation().after(strict_time_, &NocWrites::acknowledged, this,
                                sim::kHardwarePriority);
    return;
  }
  if (ordering == Ordering::standard) return acknowledged(this);
  --under_way_;
  --unfinished_;
  issue_soon();
  changed_();
}

void NocWrites::acknowledged(void* context) {
  auto& self = *static_cast<NocWrites*>(context);
  --self.unacknowledged_;
  --self.under_way_;
  --self.unfinished_;
  self.issue_soon();
  self.changed_();
}

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
