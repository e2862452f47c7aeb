// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// NCCL's id for the processes that a launcher starts, through the file that $NCCL_TEST_ID names.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "check.hpp"

inline int number_of(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Process 0 writes the id under another name first, so that no process reads a part of it.
inline ncclUniqueId common_id() {
  const char* const path = std::getenv("NCCL_TEST_ID");
  ncclUniqueId id;
  if (path == nullptr) std::exit(2);
  if (number_of("RANK", 0) == 0) {
    const std::string part = std::string(path) + ".part";
    check(ncclGetUniqueId(&id));
    std::ofstream(part).write(id.internal, sizeof id.internal);
    std::rename(part.c_str(), path);
    return id;
  }
  for (int tries = 0; tries < 6000; ++tries) {
    if (std::ifstream(path).read(id.internal, sizeof id.internal)) return id;
    usleep(10'000);
  }
  std::printf("process 0 has written no id in 60 s\n");
  std::exit(2);
}
