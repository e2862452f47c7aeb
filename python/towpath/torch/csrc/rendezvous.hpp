// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "group_api.h"

namespace towpath_torch {

// How the ranks of a group find each other.
struct Job {
  std::string transport;
  std::string name;
  std::string token;  // of a job between hosts
  int listener = -1;  // of rank 0 of one, where it listens already
};

// The transport that this rank would use, and where others reach it: an address or a name.
struct Wish {
  std::string transport;
  std::string address;
};

// Rank 0 makes the job as it wishes, and the store hands it to the others. Throws where ranks of
// two hosts are to share memory.
Job meet(const towpath_group_api& api, c10d::Store& store, int rank, const Wish& wish,
         std::chrono::milliseconds timeout);

}  // namespace towpath_torch
