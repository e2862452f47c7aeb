// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/command.hpp"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "towpath/os/file_descriptor.hpp"

extern char** environ;

namespace towpath::os {

namespace {

// Files in memory instead of pipes, so that neither end can block the other.
FileDescriptor memory_file(const char* name) {
  FileDescriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (!file.is_open()) throw std::system_error(errno, std::generic_category(), "memfd_create");
  return file;
}

std::string content_of(const FileDescriptor& file) {
  // Heap-allocated: fibers that compile kernels have small stacks.
  const off_t end = ::lseek(file.number(), 0, SEEK_END);
  std::string content(end > 0 ? static_cast<std::size_t>(end) : 0, '\0');
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t size = ::pread(file.number(), content.data() + done, content.size() - done,
                                 static_cast<off_t>(done));
    if (size <= 0) throw std::system_error(errno, std::generic_category(), "read");
    done += static_cast<std::size_t>(size);
  }
  return content;
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& words, const std::string& input) {
  const FileDescriptor in = memory_file("input");
  const FileDescriptor out = memory_file("output");
  const FileDescriptor errors = memory_file("errors");
  for (std::size_t at = 0; at < input.size();) {
    const ssize_t size = ::write(in.number(), input.data() + at, input.size() - at);
    if (size < 0) throw std::system_error(errno, std::generic_category(), "write");
    at += static_cast<std::size_t>(size);
  }
  ::lseek(in.number(), 0, SEEK_SET);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.number(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.number(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, errors.number(), 2);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  CommandResult result;
  if (error != 0) {
    result.status = CommandResult::kNotFound;
    result.errors = words[0] + ": " + std::generic_category().message(error);
    return result;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.output = content_of(out);
  result.errors = content_of(errors);
  return result;
}

}  // namespace towpath::os
