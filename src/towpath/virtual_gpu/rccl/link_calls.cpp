// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The links between GPUs. RCCL's own reader takes them from files of the kernel driver, and this
// one takes them from the description.

#include <cstdint>

#include "alt_rsmi.h"
#include "rocm_smi/rocm_smi.h"
#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/system.hpp"

using namespace towpath::virtual_gpu;

namespace {

constexpr std::uint64_t kXgmiWeight = 15;  // of a direct link, src/misc/rocm_smi_wrap.cc
constexpr std::uint64_t kPcieWeight = 40;

const Machine& machine() { return towpath::virtual_gpu::system().machine(); }

bool exists(std::uint32_t device) { return device < machine().devices().size(); }

bool is_linked(std::uint32_t from, std::uint32_t to) {
  const auto& devices = machine().devices();
  for (const NvLink& link : devices[from].links) {
    if (bus_number(link.remote_bus_id) == bus_number(devices[to].bus_id)) return true;
  }
  return false;
}

}  // namespace

int ARSMI_init() { return 0; }
int ARSMI_get_num_devices(std::uint32_t* count) {
  *count = static_cast<std::uint32_t>(machine().devices().size());
  return 0;
}
// Domain, bus, device and function in bits 32, 8, 3 and 0.
int ARSMI_dev_pci_id_get(std::uint32_t device, std::uint64_t* id) {
  if (!exists(device)) return 1;
  const std::uint64_t bus = bus_number(machine().devices()[device].bus_id).value();
  *id = bus >> 20 << 32 | (bus >> 12 & 0xff) << 8 | (bus >> 4 & 0x1f) << 3 | (bus & 7);
  return 0;
}
int ARSMI_topo_get_link_info(std::uint32_t from, std::uint32_t to, ARSMI_linkInfo* info) {
  if (!exists(from) || !exists(to)) return 1;
  const bool linked = is_linked(from, to);
  *info = {};
  info->src_node = from;
  info->dst_node = to;
  info->hops = linked ? 1 : 2;
  info->type = linked ? ARSMI_IOLINK_TYPE_XGMI : ARSMI_IOLINK_TYPE_PCIEXPRESS;
  info->weight = linked ? kXgmiWeight : kPcieWeight;
  return 0;
}

extern "C" {
rsmi_status_t rsmi_init(std::uint64_t) { stop_at_unknown("rsmi_init"); }
rsmi_status_t rsmi_version_get(rsmi_version_t*) { stop_at_unknown("rsmi_version_get"); }
rsmi_status_t rsmi_status_string(rsmi_status_t, const char**) {
  stop_at_unknown("rsmi_status_string");
}
rsmi_status_t rsmi_num_monitor_devices(std::uint32_t*) {
  stop_at_unknown("rsmi_num_monitor_devices");
}
rsmi_status_t rsmi_dev_pci_id_get(std::uint32_t, std::uint64_t*) {
  stop_at_unknown("rsmi_dev_pci_id_get");
}
rsmi_status_t rsmi_topo_get_link_type(std::uint32_t, std::uint32_t, std::uint64_t*,
                                      RSMI_IO_LINK_TYPE*) {
  stop_at_unknown("rsmi_topo_get_link_type");
}
rsmi_status_t rsmi_topo_get_link_weight(std::uint32_t, std::uint32_t, std::uint64_t*) {
  stop_at_unknown("rsmi_topo_get_link_weight");
}
rsmi_status_t rsmi_minmax_bandwidth_get(std::uint32_t, std::uint32_t, std::uint64_t*,
                                        std::uint64_t*) {
  stop_at_unknown("rsmi_minmax_bandwidth_get");
}
}  // extern "C"
