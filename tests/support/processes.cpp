// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "processes.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <system_error>

namespace towpath::conformance {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void run_child(int pipe, int rank, const std::function<void(int)>& body) {
  std::string failure;
  try {
    body(rank);
  } catch (const std::exception& error) {
    failure = error.what();
  } catch (...) {
    failure = "threw something that is not an exception";
  }
  if (!failure.empty() && ::write(pipe, failure.data(), failure.size()) < 0) ::_exit(2);
  ::_exit(failure.empty() ? 0 : 1);  // no destructors or buffers of the parent
}

}  // namespace

Processes::Processes(int ranks, const std::function<void(int rank)>& body) {
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    const pid_t pid = ::fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) run_child(ends[1], rank, body);
    ::close(ends[1]);
    children_.push_back({pid, ends[0], ""});
  }
}

Processes::~Processes() {
  for (Child& child : children_) {
    if (child.pid > 0) ::kill(child.pid, SIGKILL);
    reap(child, false);
  }
}

void Processes::listen(Child& child) const {
  std::array<char, 4096> text;
  const ssize_t count = ::read(child.pipe, text.data(), text.size());
  if (count > 0) {
    child.outcome.append(text.data(), static_cast<std::size_t>(count));
  } else {
    reap(child, false);
  }
}

void Processes::reap(Child& child, bool was_hung) const {
  if (child.pid < 0) return;
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  if (was_hung) {
    child.outcome = "did not end, and was killed for it";
  } else if (WIFSIGNALED(status)) {
    child.outcome = fmt::format("killed by signal {}", WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0 && child.outcome.empty()) {
    child.outcome = fmt::format("ended with status {}", WEXITSTATUS(status));
  }
  child.pid = -1;
  ::close(child.pipe);
}

std::vector<std::string> Processes::wait(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (true) {
    std::vector<pollfd> entries;
    std::vector<Child*> alive;
    for (Child& child : children_) {
      if (child.pid < 0) continue;
      entries.push_back({child.pipe, POLLIN, 0});
      alive.push_back(&child);
    }
    if (alive.empty()) break;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      for (Child* child : alive) {
        ::kill(child->pid, SIGKILL);
        reap(*child, true);
      }
      break;
    }
    ::poll(entries.data(), entries.size(), static_cast<int>(left));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].revents != 0) listen(*alive[i]);
    }
  }
  std::vector<std::string> outcomes;
  for (const Child& child : children_) outcomes.push_back(child.outcome);
  return outcomes;
}

}  // namespace towpath::conformance
