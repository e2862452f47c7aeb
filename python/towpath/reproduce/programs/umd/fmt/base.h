// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>  // fmt before version 11 has no base.h
