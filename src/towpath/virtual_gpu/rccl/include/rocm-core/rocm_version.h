// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define ROCM_BUILD_INFO "6.2.0"
