// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda_runtime.h"
#ifdef TOWPATH_VIRTUAL_GPU
#include "towpath_cuda_driver.h"
#endif
