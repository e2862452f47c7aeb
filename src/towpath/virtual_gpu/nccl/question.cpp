// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/nccl/question.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {

Question Question::read(const char* path) {
  std::ifstream file(path);
  if (!file) stop(std::string("cannot read the question, ") + path);
  Question question;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string keyword;
    words >> keyword;
    if (keyword == "nodes") {
      words >> question.nodes;
    } else if (keyword == "gpus_per_node") {
      words >> question.gpus_per_node;
    } else if (keyword == "replicated") {
      words >> question.is_replicated;
    } else if (keyword == "deadline_s") {
      words >> question.deadline_s;
    } else if (keyword == "memory_max_bytes") {
      words >> question.memory_max_bytes;
    } else if (keyword == "log_file") {
      words >> question.log_file;
    } else if (keyword == "operation") {
      Operation operation;
      words >> operation.collective >> operation.size_bytes;
      question.operations.push_back(operation);
    } else {
      stop("the question has an unknown line: " + line);
    }
    if (words.fail()) stop("the question has a wrong line: " + line);
  }
  return question;
}

void answer(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(kStoppedStatus + 1);
}

}  // namespace towpath::virtual_gpu
