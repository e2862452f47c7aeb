// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ROCm's driver. RCCL opens its library at run time, finds none, and runs without DMA-BUF.
#include <stddef.h>
#include <stdint.h>

typedef int hsa_status_t;
typedef int hsa_system_info_t;
enum { HSA_STATUS_SUCCESS = 0 };
enum { HSA_SYSTEM_INFO_VERSION_MAJOR = 0, HSA_SYSTEM_INFO_VERSION_MINOR = 1 };
