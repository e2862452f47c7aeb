// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "towpath/gpu/pe.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/live_transport.hpp"

namespace towpath::gpu {

struct LiveOptions {
  Time timeout = Time::from_seconds(60);  // in which nothing may happen
  std::uint64_t heap_bytes = 0;           // the size of the transport's heap
  // Records the run by the clock of the transport, and outlives the run. May be null.
  Profile* profile = nullptr;
  Time kernel_limit = kKernelLimit;
};

// This process's PE of a live run. Its host program and kernels alternate on one thread: blocks run
// while the host program waits, and wait for bytes from other processes.
class LivePe {
 public:
  LivePe(transport::LiveTransport& transport, const std::filesystem::path& object,
         const LiveOptions& options);
  ~LivePe();

  Pe& pe() { return *pe_; }
  int run_main(const std::vector<std::string>& arguments);
  void run(const std::function<void(Pe&)>& body);

 private:
  void finish(const std::function<void()>& start);
  void advance();
  [[noreturn]] void give_up();
  Time patience() const;
  // True if any progress was made.
  bool step();
  void look_around(Time now);

  transport::LiveTransport& transport_;
  std::unique_ptr<sim::Simulation> simulation_;
  ThreadStack stack_;
  Meeting meeting_;
  Run run_;
  int looks_ = 0;  // of threads that poll, since the last arrival, in vain
  std::exception_ptr failure_;
  std::unique_ptr<Pe> pe_;
};

}  // namespace towpath::gpu
