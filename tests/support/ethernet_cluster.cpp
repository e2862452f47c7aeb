// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "ethernet_cluster.hpp"

#include <stdexcept>

#include "chips.hpp"

namespace towpath::tenstorrent {

namespace {

machine::ChipCluster chips_without_links(int chips, int queues_for_kernels = 1) {
  machine::ChipCluster cluster;
  cluster.name = "test";
  machine::Chip drawn = machine::drawn_chip({"eeee", "wwww"});
  drawn.ethernet.tx_queues_for_kernels = queues_for_kernels;
  const auto chip = machine::build_chip(std::move(drawn));
  for (int i = 0; i < chips; ++i) cluster.chips.push_back({.chip = chip, .x = i});
  return cluster;
}

}  // namespace

std::shared_ptr<const machine::ChipCluster> two_chips(int links, int queues_for_kernels) {
  machine::ChipCluster cluster = chips_without_links(2, queues_for_kernels);
  for (int i = 0; i < links; ++i) cluster.links.push_back({{{{0, i}, {1, i}}}});
  return machine::build_chip_cluster(std::move(cluster));
}

std::shared_ptr<const machine::ChipCluster> ring_of_chips(int chips) {
  machine::ChipCluster cluster = chips_without_links(chips);
  for (int i = 0; i < chips; ++i) cluster.links.push_back({{{{i, 1}, {(i + 1) % chips, 0}}}});
  return machine::build_chip_cluster(std::move(cluster));
}

void Pair::create(const EthernetKernel& sender, const EthernetKernel& receiver) {
  cluster.create_program(0).create_kernel({0, 0}, {.name = "sender"}, sender);
  cluster.create_program(1).create_kernel({0, 0}, {.name = "receiver"}, receiver);
}

std::vector<std::byte> Pair::read(int chip, std::uint64_t offset, std::uint64_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  cluster.device(chip).memory({0, 0}).read(offset, bytes);
  return bytes;
}

std::uint32_t Pair::word(int chip, std::uint64_t offset) {
  return cluster.device(chip).memory({0, 0}).load_word(offset);
}

Failure run_to_failure(Cluster& cluster) {
  return run_to_failure([&] { cluster.run(); });
}

Failure run_to_failure(const std::function<void()>& run) {
  try {
    run();
  } catch (const HazardError& error) {
    return {std::string(name_of(error.hazard())),
            error.culprit().chip,
            error.culprit().kernel,
            error.what(),
            {}};
  } catch (const KernelDeadlock& error) {
    return {"deadlock", -1, "", error.what(), error.kernels()};
  } catch (const std::invalid_argument& error) {
    return {"refusal", -1, "", error.what(), {}};
  } catch (const std::runtime_error& error) {
    return {"error", -1, "", error.what(), {}};
  }
  return {"none", -1, "", "", {}};
}

}  // namespace towpath::tenstorrent
