// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ROCm's management library, which RCCL calls only if RCCL_USE_ROCM_SMI_LIB is set.
#include <stdint.h>

enum RSMI_IO_LINK_TYPE {
  RSMI_IOLINK_TYPE_UNDEFINED = 0,
  RSMI_IOLINK_TYPE_PCIEXPRESS = 1,
  RSMI_IOLINK_TYPE_XGMI = 2,
};
enum rsmi_status_t { RSMI_STATUS_SUCCESS = 0 };
struct rsmi_version_t {
  uint32_t major, minor, patch;
  const char* build;
};

extern "C" {
rsmi_status_t rsmi_init(uint64_t flags);
rsmi_status_t rsmi_version_get(rsmi_version_t* version);
rsmi_status_t rsmi_status_string(rsmi_status_t status, const char** text);
rsmi_status_t rsmi_num_monitor_devices(uint32_t* count);
rsmi_status_t rsmi_dev_pci_id_get(uint32_t device, uint64_t* id);
rsmi_status_t rsmi_topo_get_link_type(uint32_t from, uint32_t to, uint64_t* hops,
                                      RSMI_IO_LINK_TYPE* type);
rsmi_status_t rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t* weight);
rsmi_status_t rsmi_minmax_bandwidth_get(uint32_t from, uint32_t to, uint64_t* least,
                                        uint64_t* most);
}
