// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/sim/simulation.hpp"

namespace towpath::pcie {

enum class Mechanism : std::uint8_t { mmio, dma, noc };
std::string_view name_of(Mechanism mechanism);

// Part of a transfer's time with one cause.
struct Part {
  std::string_view name;
  Time time;
};

// Result of a call, and its time.
struct Transfer {
  Mechanism asked = Mechanism::mmio;
  Mechanism used = Mechanism::mmio;
  std::string obstacle;  // why it differs from the request; empty if it does not
  Time begin;
  Time end;                    // when the call returned
  std::uint64_t accesses = 0;  // read by the processor: round trips
  int windows = 0;             // windows configured for it
  std::vector<Part> parts;     // their sum is time()

  Time time() const { return end - begin; }
};

// Account of one call. The processor runs ahead of simulated time. finish() advances simulated time
// to it.
class Account {
 public:
  Account(const sim::Simulation& simulation, Mechanism mechanism) : now_(simulation.now()) {
    transfer.asked = transfer.used = mechanism;
    transfer.begin = now_;
  }

  Time now() const { return now_; }
  // `name` must outlive the account.
  void spend(std::string_view name, Time time);
  Transfer finish(sim::Simulation& simulation);

  Transfer transfer;

 private:
  Time now_;
};

}  // namespace towpath::pcie
