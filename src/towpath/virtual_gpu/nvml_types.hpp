// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of NVML's interface that virtual GPUs answer. A structure with a version in its first
// word is read and written as that version.

namespace towpath::virtual_gpu::nvml {

enum Result {
  kSuccess = 0,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
};
enum PeerIndex { kPeerRead = 0, kPeerWrite = 1, kPeerNvLink = 2, kPeerAtomics = 3, kPeerPcie = 4 };
enum PeerStatus { kPeerGood = 0, kPeerDisabledByRegistry = 4 };
enum LinkCapability { kCapabilityPeer = 0 };
enum FabricState : unsigned char { kFabricNotSupported = 0, kFabricCompleted = 3 };

using Handle = void*;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct PciInfoExtended {
  unsigned version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
  char bus_id[32];
};
struct FabricInfo1 {
  unsigned char cluster[16];
  Result status;
  unsigned clique;
  unsigned char state;
};
struct FabricInfo2 {
  unsigned version;
  unsigned char cluster[16];
  Result status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
struct PlatformInfo {
  unsigned version;
  unsigned char ib_guid[16], chassis[16];
  unsigned char slot, tray, host, peer_type, module;
};
struct ConfidentialState {
  unsigned environment, is_enabled, tools_mode;
};
struct ConfidentialSettings {
  unsigned version, environment, is_enabled, tools_mode, multi_gpu_mode;
};
union Value {
  double number;
  unsigned whole;
  unsigned long long long_whole;
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency_us;
  int type;
  Result result;
  Value value;
};

// Numbers of fields, from NVML's header.
inline constexpr unsigned kFieldLinkSpeed = 90, kFieldLinkCount = 91, kFieldC2cCount = 170,
                          kFieldC2cStatus = 171, kFieldC2cRate = 172, kFieldLinkState = 165,
                          kFieldLinkGetSpeed = 164;

}  // namespace towpath::virtual_gpu::nvml
