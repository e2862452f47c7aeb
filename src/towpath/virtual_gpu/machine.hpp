// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The GPUs of one host, read from a text file of lines "KEYWORD NAME=VALUE ...".

namespace towpath::virtual_gpu {

struct NvLink {
  int link;
  std::string remote_bus_id;
  bool to_switch;
};

struct Device {
  std::string bus_id;  // "0000:18:00.0"
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t shared_bytes = 0;  // a block may ask for
  bool has_multicast = false;
  bool has_fabric_handles = false;
  // The NVLink domain that spans hosts: a hexadecimal id of 16 bytes, and the clique in it.
  std::string fabric_cluster;
  unsigned fabric_clique = 0;
  std::vector<NvLink> links;
};

struct Adapter {
  std::string name;
  std::string pci_path;
  std::uint64_t guid = 0;
  int speed_mbit_per_s = 0;
  int port = 0;
  bool has_gpu_direct = false;
};

class Machine {
 public:
  // Throws std::invalid_argument with the line that is wrong.
  static Machine parse(const std::string& text);

  const std::vector<Device>& devices() const { return devices_; }
  const std::vector<Adapter>& adapters() const { return adapters_; }
  int driver_version() const { return driver_version_; }
  bool can_access(int device, int peer) const;
  // None if no device has this bus id. A domain of 4 or 8 digits and either case match.
  std::optional<int> device_at(const std::string& bus_id) const;

 private:
  int driver_version_ = 12080;
  std::vector<Device> devices_;
  std::vector<Adapter> adapters_;
  bool all_peers_ = true;
  std::vector<std::array<int, 2>> peers_;
};

// Domain, bus, device and function as one number. None if the text is not a bus id.
std::optional<std::uint64_t> bus_number(const std::string& bus_id);

}  // namespace towpath::virtual_gpu
