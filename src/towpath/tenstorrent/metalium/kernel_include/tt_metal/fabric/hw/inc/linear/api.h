// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A checkout's has more forms, all made of what is in fabric/.
#if __has_include_next("tt_metal/fabric/hw/inc/linear/api.h")
#include "fabric/send.h"
#include_next "tt_metal/fabric/hw/inc/linear/api.h"
#else
#include "fabric/linear.h"
#endif
