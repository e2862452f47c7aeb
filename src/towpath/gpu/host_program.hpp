// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "towpath/os/code_fault.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::gpu {

class LoadedObject;

// The host program of a GPU, as a process of the simulation.
class HostProgram {
 public:
  // `idle` returns true if all started work has finished. The program then ends. `ended` is called
  // in its process when main() has ended, with the way in which it ended.
  HostProgram(sim::Simulation& simulation, const LoadedObject& object, int rank,
              std::function<bool()> idle, std::function<void(const std::string&)> ended)
      : simulation_(simulation),
        object_(object),
        rank_(rank),
        idle_(std::move(idle)),
        ended_(std::move(ended)) {}

  // Starts main(). Its status, in the system's form, is available when is_finished() is true.
  void start_main(std::vector<std::string> arguments);
  // Starts a function of this program instead.
  void start(std::function<void()> body);
  bool is_finished() const { return is_finished_; }
  int status() const { return status_; }
  [[noreturn]] void exit(int status);

  // Makes the host program wait. Called from its process. `what` is a literal.
  void block(const std::function<bool()>& holds, const char* what);
  void block_until_idle(const char* what) { block(idle_, what); }
  void wake();
  // The program will be unwound. Its waits return at once.
  void close() { is_closing_ = true; }
  void note_end(std::string predicate) { end_ = std::move(predicate); }
  // "PE 1: its host program waits for a stream\n", or an empty string.
  std::string waiting() const;

 private:
  sim::Simulation& simulation_;
  const LoadedObject& object_;
  int rank_;
  std::function<bool()> idle_;
  std::function<void(const std::string&)> ended_;
  std::string end_;  // a predicate about the program
  sim::Process* process_ = nullptr;
  const char* waits_for_ = nullptr;
  void run(const std::function<void()>& body);
  bool is_finished_ = false;
  bool is_closing_ = false;
  int status_ = 0;
};

}  // namespace towpath::gpu
