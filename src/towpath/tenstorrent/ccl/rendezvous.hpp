// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::tenstorrent::ccl {

class SimulatedChips;

// Ranks of a schedule wait for each other before each call.
class Rendezvous {
 public:
  Rendezvous(SimulatedChips& ranks, const collective::Schedule& schedule,
             std::function<void(int rank)> on_complete);
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // The rank notifies the others. on_complete is called once all their notices are here.
  void enter(int rank);

 private:
  enum class Form { peers, all, all_round };
  struct Meeting {
    Rendezvous* rendezvous = nullptr;
    int rank = 0;
    std::vector<transport::Move> notices;  // one to each peer
    transport::SignalWait all_present;
  };

  Form form_for(const collective::Schedule& schedule) const;

  SimulatedChips& ranks_;
  std::function<void(int rank)> on_complete_;
  std::vector<Meeting> meetings_;  // one per rank
  Form form_ = Form::peers;
};

// Whether ranks pass data on: the first one does not exchange data with all others.
bool passes_on(const collective::Schedule& schedule);

}  // namespace towpath::tenstorrent::ccl
