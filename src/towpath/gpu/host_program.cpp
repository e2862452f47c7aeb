// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/host_program.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "towpath/gpu/errors.hpp"
#include "towpath/gpu/object.hpp"

extern char** environ;

namespace towpath::gpu {

namespace {

constexpr std::size_t kStackBytes = 8 << 20;
constexpr int kStatusMask = 0xff;  // the part that the parent of a process sees

// Ends the host program at its call of exit().
struct Exit {
  int status;
};

}  // namespace

void HostProgram::run(const std::function<void()>& body) {
  try {
    body();
  } catch (const os::CodeFault& fault) {
    throw object_.named(fault, fmt::format("the host program of PE {}", rank_));
  } catch (...) {
    rethrow_named(fmt::format("the host program of PE {}", rank_));
  }
}

void HostProgram::start(std::function<void()> body) {
  is_finished_ = false;
  process_ = &simulation_.spawn(
      fmt::format("host program of PE {}", rank_),
      [this, body = std::move(body)] {
        os::throw_code_faults();
        run(body);
        block_until_idle("its streams");
        is_finished_ = true;
        process_ = nullptr;
      },
      kStackBytes);
}

void HostProgram::start_main(std::vector<std::string> arguments) {
  const auto main = object_.object().main;
  if (main == nullptr) {
    throw KernelError(KernelError::Kind::usage,
                      "the source has no main(); launch its kernels by name from Python or C++");
  }
  start([this, main, arguments = std::move(arguments)]() mutable {
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    std::string how;
    try {
      status_ = main(static_cast<int>(arguments.size()), words.data(), environ);
      how = fmt::format("the return of {} from main()", status_);
      block_until_idle("its streams");
    } catch (const Exit& ended) {
      status_ = ended.status;
      how = fmt::format("exit({})", status_);
    }
    status_ &= kStatusMask;
    ended_(how);
  });
}

void HostProgram::exit(int status) { throw Exit{status}; }

void HostProgram::block(const std::function<bool()>& holds, const char* what) {
  while (!is_closing_ && !holds()) {
    waits_for_ = what;
    simulation_.suspend(what);
    waits_for_ = nullptr;
  }
}

void HostProgram::wake() {
  if (process_ != nullptr) simulation_.wake(*process_);
}

std::string HostProgram::waiting() const {
  if (!end_.empty()) return fmt::format("PE {}: its host program {}\n", rank_, end_);
  if (waits_for_ == nullptr) return "";
  return fmt::format("PE {}: its host program waits for {}\n", rank_, waits_for_);
}

}  // namespace towpath::gpu
