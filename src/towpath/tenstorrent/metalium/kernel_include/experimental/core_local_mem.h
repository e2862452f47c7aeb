// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A header of a tt-metal checkout, read as the vendor's compiler reads it: g++ before 13 takes a
// static_assert(false) for an error in a template that is never used.

#include "experimental/lock.h"
#include "experimental/noc.h"

#if __has_include_next("experimental/core_local_mem.h")
#define static_assert(...)
#include_next "experimental/core_local_mem.h"
#undef static_assert
#else
#error "experimental/core_local_mem.h is tt-metal's; give its folder tt_metal/hw/inc as an include folder"
#endif
