// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath_narrow_float.h"

struct hip_bfloat16 {
  uint16_t data;

  hip_bfloat16() = default;
  explicit hip_bfloat16(float value);
};
