// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath_prelude.h"

#define ASSERT(condition, ...)                                                         \
  do {                                                                                 \
    if (!(condition)) TOWPATH_CALL(refuse, "the kernel's assertion fails: " #condition); \
  } while (false)
#define WAYPOINT(...)
#define PAUSE()
#define RING_BUFFER
#define WATCHER_RING_BUFFER_PUSH(...)
