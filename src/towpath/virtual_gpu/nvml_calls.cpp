// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// NVML, which programs load as a library and look up by name: devices, peers, NVLinks, the fabric.

#include <cstdio>
#include <cstring>
#include <string>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/nvml_types.hpp"
#include "towpath/virtual_gpu/system.hpp"

using namespace towpath::virtual_gpu;
using namespace towpath::virtual_gpu::nvml;

namespace {

const Machine& machine() { return towpath::virtual_gpu::system().machine(); }

// A handle is the number of a device, and one more so that it is never null.
Handle handle_of(int device) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(device) + 1);
}
int number_of(Handle handle) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle)) - 1;
}
const Device* device_of(Handle handle) {
  const int number = number_of(handle);
  return has_device(number) ? &machine().devices()[static_cast<std::size_t>(number)] : nullptr;
}
const NvLink* link_of(Handle handle, unsigned link) {
  const Device* const device = device_of(handle);
  return device == nullptr || link >= device->links.size() ? nullptr : &device->links[link];
}

template <typename Info>
void describe(Info& info, const std::string& bus_id) {
  const auto bus = bus_number(bus_id).value();
  info.domain = static_cast<unsigned>(bus >> 20);
  info.bus = static_cast<unsigned>(bus >> 12 & 0xff);
  info.device = static_cast<unsigned>(bus >> 4 & 0xff);
  std::snprintf(info.bus_id, sizeof info.bus_id, "%08x:%02x:%02x.0", info.domain, info.bus,
                info.device);
}

template <typename Info>
Result describe_fabric(Info& info, const Device& device) {
  if (device.fabric_cluster == "none") {
    info.state = kFabricNotSupported;
    return kNotSupported;
  }
  std::memset(info.cluster, 0, sizeof info.cluster);
  for (std::size_t i = 0; i < sizeof info.cluster && 2 * i + 1 < device.fabric_cluster.size();
       ++i) {
    const std::string byte = device.fabric_cluster.substr(2 * i, 2);
    info.cluster[i] = static_cast<unsigned char>(std::strtoul(byte.c_str(), nullptr, 16));
  }
  info.status = kSuccess;
  info.clique = device.fabric_clique;
  info.state = kFabricCompleted;
  return kSuccess;
}

}  // namespace

extern "C" {

Result nvmlInit() { return kSuccess; }
Result nvmlInit_v2() { return kSuccess; }
Result nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(Result result) {
  switch (result) {
    case kSuccess: return "success";
    case kInvalidArgument: return "invalid argument";
    case kNotSupported: return "not supported";
    case kNotFound: return "not found";
  }
  return "unknown error";
}
Result nvmlDeviceGetCount(unsigned* count) {
  *count = static_cast<unsigned>(machine().devices().size());
  return kSuccess;
}
Result nvmlDeviceGetCount_v2(unsigned* count) { return nvmlDeviceGetCount(count); }
Result nvmlDeviceGetHandleByIndex(unsigned index, Handle* handle) {
  if (!has_device(static_cast<int>(index))) return kInvalidArgument;
  *handle = handle_of(static_cast<int>(index));
  return kSuccess;
}
Result nvmlDeviceGetHandleByPciBusId(const char* bus_id, Handle* handle) {
  const auto found = machine().device_at(bus_id);
  if (!found) return kNotFound;
  *handle = handle_of(*found);
  return kSuccess;
}
Result nvmlDeviceGetIndex(Handle handle, unsigned* index) {
  if (device_of(handle) == nullptr) return kInvalidArgument;
  *index = static_cast<unsigned>(number_of(handle));
  return kSuccess;
}
Result nvmlDeviceGetCudaComputeCapability(Handle handle, int* major, int* minor) {
  const Device* const device = device_of(handle);
  if (device == nullptr) return kInvalidArgument;
  *major = device->major;
  *minor = device->minor;
  return kSuccess;
}
Result nvmlDeviceGetPciInfo_v3(Handle handle, PciInfo* info) {
  const Device* const device = device_of(handle);
  if (device == nullptr) return kInvalidArgument;
  *info = {};
  describe(*info, device->bus_id);
  return kSuccess;
}
Result nvmlDeviceGetPciInfoExt(Handle handle, PciInfoExtended* info) {
  const Device* const device = device_of(handle);
  if (device == nullptr) return kInvalidArgument;
  const unsigned version = info->version;
  *info = {};
  info->version = version;
  info->base_class = 3;
  info->sub_class = 2;
  describe(*info, device->bus_id);
  return kSuccess;
}
Result nvmlDeviceGetPcieLinkMaxSpeed(Handle, int*) {
  stop_at_unknown("nvmlDeviceGetPcieLinkMaxSpeed");
}
Result nvmlDeviceGetCurrPcieLinkGeneration(Handle, unsigned*) {
  stop_at_unknown("nvmlDeviceGetCurrPcieLinkGeneration");
}
Result nvmlDeviceGetCurrPcieLinkWidth(Handle, unsigned*) {
  stop_at_unknown("nvmlDeviceGetCurrPcieLinkWidth");
}
Result nvmlDeviceGetP2PStatus(Handle one, Handle other, PeerIndex index, PeerStatus* status) {
  if (device_of(one) == nullptr || device_of(other) == nullptr) return kInvalidArgument;
  if (index > kPeerPcie) {
    stop_at_unknown(("nvmlDeviceGetP2PStatus with index " + std::to_string(index)).c_str());
  }
  const int from = number_of(one), to = number_of(other);
  *status = from == to || machine().can_access(from, to) ? kPeerGood : kPeerDisabledByRegistry;
  return kSuccess;
}

Result nvmlDeviceGetNvLinkState(Handle handle, unsigned link, int* is_active) {
  if (device_of(handle) == nullptr) return kInvalidArgument;
  *is_active = link_of(handle, link) != nullptr;
  return *is_active != 0 ? kSuccess : kInvalidArgument;
}
Result nvmlDeviceGetNvLinkCapability(Handle handle, unsigned link, LinkCapability capability,
                                     unsigned* result) {
  if (capability != kCapabilityPeer) {
    stop_at_unknown(
        ("nvmlDeviceGetNvLinkCapability with capability " + std::to_string(capability)).c_str());
  }
  if (link_of(handle, link) == nullptr) return kInvalidArgument;
  *result = 1;
  return kSuccess;
}
Result nvmlDeviceGetNvLinkRemotePciInfo(Handle handle, unsigned link, PciInfo* info) {
  const NvLink* const found = link_of(handle, link);
  if (found == nullptr) return kInvalidArgument;
  *info = {};
  describe(*info, found->remote_bus_id);
  return kSuccess;
}
Result nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle handle, unsigned link, PciInfo* info) {
  return nvmlDeviceGetNvLinkRemotePciInfo(handle, link, info);
}
Result nvmlDeviceGetFieldValues(Handle handle, int count, FieldValue* values) {
  const Device* const device = device_of(handle);
  if (device == nullptr) return kInvalidArgument;
  for (int i = 0; i < count; ++i) {
    values[i].result = kSuccess;
    switch (values[i].field) {
      case kFieldLinkCount:
        values[i].value.whole = static_cast<unsigned>(device->links.size());
        break;
      case kFieldLinkState: values[i].value.whole = values[i].scope < device->links.size(); break;
      // A link of the chip to its CPU is in the topology file or nowhere.
      case kFieldC2cCount: values[i].result = kNotSupported; break;
      default:
        stop_at_unknown(
            ("nvmlDeviceGetFieldValues with field " + std::to_string(values[i].field)).c_str());
    }
  }
  return kSuccess;
}

Result nvmlDeviceGetGpuFabricInfo(Handle handle, FabricInfo1* info) {
  const Device* const device = device_of(handle);
  if (device == nullptr) return kInvalidArgument;
  return describe_fabric(*info, *device);
}
Result nvmlDeviceGetGpuFabricInfoV(Handle handle, FabricInfo2* info) {
  const Device* const device = device_of(handle);
  if (device == nullptr) return kInvalidArgument;
  info->health = 0;
  return describe_fabric(*info, *device);
}
// The place of a GPU in its rack is not described.
Result nvmlDeviceGetPlatformInfo(Handle, PlatformInfo*) { return kNotSupported; }
Result nvmlSystemGetConfComputeState(ConfidentialState* state) {
  *state = {};
  return kSuccess;
}
Result nvmlSystemGetConfComputeSettings(ConfidentialSettings* settings) {
  const unsigned version = settings->version;
  *settings = {};
  settings->version = version;
  return kSuccess;
}

}  // extern "C"
