// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/transports.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "conformance/simulated_cluster.hpp"
#include "conformance/simulated_fabric.hpp"
#include "conformance/simulated_mailboxes.hpp"
#include "processes.hpp"
#include "towpath/live/connect.hpp"

namespace towpath::conformance {
namespace {

// `setting`: an environment variable of the ranks and its value, or null.
std::vector<std::string> run_live(std::string_view transport, int ranks, const Body& body,
                                  const char* setting = nullptr, const char* value = nullptr) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::string name = fmt::format("conformance-{}-{}", ::getpid(), now);
  Processes processes(ranks, [&](int rank) {
    if (setting != nullptr) ::setenv(setting, value, 1);
    const auto joined = live::connect(
        transport,
        {.rendezvous = name, .rank = rank, .ranks = ranks, .timeout = Time::from_seconds(30)});
    body(*joined);
  });
  return processes.wait(std::chrono::seconds(60));
}

}  // namespace

std::vector<TransportUnderTest> transports() {
  const auto simulated = [](Time jitter_max) {
    return [jitter_max](int ranks, const Body& body) {
      return run_simulated_cluster(ranks, body, jitter_max);
    };
  };
  const auto fabric = [](FabricForm form) {
    return [form](int ranks, const Body& body) { return run_simulated_fabric(ranks, body, form); };
  };
  std::vector<TransportUnderTest> all = {
      {"simulated_mailboxes", false, run_simulated_mailboxes},
      {"simulated_cluster", false, simulated(Time())},
      {"simulated_cluster_with_jitter", false, simulated(Time::from_us(20))},
      {"ethernet_line", false, fabric(FabricForm::line)},
      {"ethernet_ring", false, fabric(FabricForm::ring)},
      {"ethernet_torus", false, fabric(FabricForm::torus)},
      {"ethernet_failing_ring", false, fabric(FabricForm::failing_ring)}};
  for (const std::string_view name : live::names()) {
    all.push_back({std::string(name), true,
                   [name](int ranks, const Body& body) { return run_live(name, ranks, body); }});
    if (name != "ucx") continue;
    all.push_back({"ucx_by_messages", true, [name](int ranks, const Body& body) {
                     return run_live(name, ranks, body, "TOWPATH_UCX_SHARED_MEMORY", "0");
                   }});
  }
  return all;
}

}  // namespace towpath::conformance
