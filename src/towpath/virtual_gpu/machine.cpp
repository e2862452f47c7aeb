// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/machine.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>

namespace towpath::virtual_gpu {
namespace {

constexpr std::size_t kDevicesMax = 1024;

// The words NAME=VALUE of a line. Each is asked for once.
class Words {
 public:
  Words(const std::string& line, int number) : where_("line " + std::to_string(number)) {
    std::istringstream stream(line);
    stream >> keyword_;
    for (std::string word; stream >> word;) {
      const auto equals = word.find('=');
      if (equals == std::string::npos) wrong("'" + word + "' must be NAME=VALUE");
      if (!values_.emplace(word.substr(0, equals), word.substr(equals + 1)).second) {
        wrong("'" + word.substr(0, equals) + "' appears twice");
      }
    }
  }

  const std::string& keyword() const { return keyword_; }

  std::string text(const std::string& name) {
    const auto found = values_.find(name);
    if (found == values_.end()) wrong("'" + name + "' is missing");
    std::string value = found->second;
    values_.erase(found);
    return value;
  }
  std::uint64_t number(const std::string& name, int base = 10) {
    const std::string value = text(name);
    std::size_t used = 0;
    std::uint64_t result = 0;
    try {
      result = std::stoull(value, &used, base);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != value.size()) wrong("'" + name + "' is '" + value + "', not a number");
    return result;
  }
  int small_number(const std::string& name) {
    const std::uint64_t value = number(name);
    if (value > 1'000'000'000) wrong("'" + name + "' is larger than 1000000000");
    return static_cast<int>(value);
  }
  bool flag(const std::string& name) { return number(name) != 0; }
  std::string bus(const std::string& name) {
    std::string value = text(name);
    if (!bus_number(value)) wrong("'" + value + "' is not a bus id such as 0000:18:00.0");
    return value;
  }
  void end() {
    if (!values_.empty()) wrong("'" + values_.begin()->first + "' is not a name of this keyword");
  }
  [[noreturn]] void wrong(const std::string& what) const {
    throw std::invalid_argument("the description of virtual GPUs, " + where_ + ": " + what);
  }

 private:
  std::string where_, keyword_;
  std::map<std::string, std::string> values_;
};

Device device_of(Words& words) {
  Device device;
  device.bus_id = words.bus("bus");
  device.name = words.text("name");
  device.major = words.small_number("major");
  device.minor = words.small_number("minor");
  device.multiprocessors = words.small_number("multiprocessors");
  device.memory_bytes = words.number("memory_bytes");
  device.shared_bytes = words.number("shared_bytes");
  device.has_multicast = words.flag("multicast");
  device.has_fabric_handles = words.flag("fabric_handles");
  device.fabric_cluster = words.text("cluster");
  device.fabric_clique = static_cast<unsigned>(words.small_number("clique"));
  return device;
}

Adapter adapter_of(Words& words) {
  Adapter adapter;
  adapter.name = words.text("name");
  adapter.pci_path = words.text("pci_path");
  adapter.guid = words.number("guid", 16);
  adapter.speed_mbit_per_s = words.small_number("speed_mbit_per_s");
  adapter.port = words.small_number("port");
  adapter.has_gpu_direct = words.flag("gpu_direct");
  return adapter;
}

}  // namespace

std::optional<std::uint64_t> bus_number(const std::string& bus_id) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  int used = 0;
  const int found =
      std::sscanf(bus_id.c_str(), "%x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used);
  if (found != 4 || static_cast<std::size_t>(used) != bus_id.size()) return std::nullopt;
  return (static_cast<std::uint64_t>(domain) << 20) | (bus << 12) | (device << 4) | function;
}

Machine Machine::parse(const std::string& text) {
  Machine machine;
  std::istringstream stream(text);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    Words words(line, number);
    const auto index = [&](const std::string& name) {
      const int value = words.small_number(name);
      if (value >= static_cast<int>(machine.devices_.size())) {
        words.wrong("'" + name + "' is " + std::to_string(value) + ", but there are " +
                    std::to_string(machine.devices_.size()) + " devices above this line");
      }
      return value;
    };
    if (words.keyword() == "driver") {
      machine.driver_version_ = words.small_number("version");
    } else if (words.keyword() == "device") {
      if (machine.devices_.size() == kDevicesMax) words.wrong("there are more than 1024 devices");
      machine.devices_.push_back(device_of(words));
    } else if (words.keyword() == "nvlink") {
      auto& links = machine.devices_[static_cast<std::size_t>(index("device"))].links;
      NvLink link{static_cast<int>(links.size()), words.bus("remote"), words.flag("switch")};
      links.push_back(link);
    } else if (words.keyword() == "adapter") {
      machine.adapters_.push_back(adapter_of(words));
    } else if (words.keyword() == "peers") {
      machine.all_peers_ = words.flag("all");
    } else if (words.keyword() == "peer") {
      machine.peers_.push_back({index("device"), index("peer")});
    } else {
      words.wrong("'" + words.keyword() +
                  "' must be driver, device, nvlink, adapter, peers or peer");
    }
    words.end();
  }
  if (machine.devices_.empty()) {
    throw std::invalid_argument("the description of virtual GPUs has no device");
  }
  return machine;
}

bool Machine::can_access(int device, int peer) const {
  if (device == peer) return false;
  return all_peers_ ||
         std::find(peers_.begin(), peers_.end(), std::array<int, 2>{device, peer}) != peers_.end();
}

std::optional<int> Machine::device_at(const std::string& bus_id) const {
  const auto wanted = bus_number(bus_id);
  if (!wanted) return std::nullopt;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (bus_number(devices_[i].bus_id) == wanted) return static_cast<int>(i);
  }
  return std::nullopt;
}

}  // namespace towpath::virtual_gpu
