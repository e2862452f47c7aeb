// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/run_compiler.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

extern char** environ;

namespace towpath::tenstorrent::metalium {

namespace {

struct Pipe {
  std::array<int, 2> ends{};
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("cannot make a pipe to the compiler");
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
  }
  std::string read_all() {
    close(ends[1]);
    ends[1] = -1;
    std::string text;
    std::array<char, 4096> block;
    while (true) {
      const ssize_t size = read(ends[0], block.data(), block.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return text;
      text.append(block.data(), static_cast<std::size_t>(size));
    }
  }
};

}  // namespace

CompilerResult run_compiler(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  Pipe output;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDERR_FILENO);
  pid_t process = 0;
  const int failed =
      posix_spawnp(&process, words.front(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {.is_missing = true, .status = 127, .output = ""};
  CompilerResult result;
  result.output = output.read_all();
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  result.is_missing = result.status == 127;
  return result;
}

}  // namespace towpath::tenstorrent::metalium
