// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/transfer.hpp"

#include <utility>

namespace towpath::pcie {

std::string_view name_of(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::mmio: return "MMIO";
    case Mechanism::dma: return "DMA";
    case Mechanism::noc: return "NoC";
  }
  return "unknown";
}

void Account::spend(std::string_view name, Time time) {
  now_ += time;
  for (Part& part : transfer.parts) {
    if (part.name != name) continue;
    part.time += time;
    return;
  }
  if (time > Time()) transfer.parts.push_back({name, time});
}

Transfer Account::finish(sim::Simulation& simulation) {
  simulation.sleep_until(now_);
  transfer.end = now_;
  return std::move(transfer);
}

}  // namespace towpath::pcie
