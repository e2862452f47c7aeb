// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace towpath::os {

// A processor exception in the code of a LibraryCopy: division by zero, invalid pointer, stack
// overflow. The text is a predicate without a subject.
class CodeFault : public std::runtime_error {
 public:
  CodeFault(const char* what_it_did, const void* address)
      : std::runtime_error(what_it_did), address_(address) {}
  const void* address() const { return address_; }  // of the instruction

 private:
  const void* address_;
};

// Converts such faults into a CodeFault thrown at the faulting instruction. Faults in other code
// still end the process. Call it on each thread that runs such code: a stack overflow needs a
// signal stack per thread.
void throw_code_faults();

// The instruction at which a signal arrived, from the third argument of its handler.
const void* interrupted_instruction(const void* context);

}  // namespace towpath::os
