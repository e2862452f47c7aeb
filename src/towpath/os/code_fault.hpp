// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace towpath::os {

// What the processor refuses to do in the code of a LibraryCopy: a division by zero, a pointer that
// leads nowhere, more stack than there is. Its text is what the code did, without a subject.
class CodeFault : public std::runtime_error {
 public:
  CodeFault(const char* what_it_did, const void* address)
      : std::runtime_error(what_it_did), address_(address) {}
  const void* address() const { return address_; }  // of the instruction

 private:
  const void* address_;
};

// From now on such a fault is thrown as a CodeFault from where it happens, instead of ending the
// process. Faults of all other code end it as before. Who runs such code calls this on each of its
// threads: a stack that is used up is noticed on a stack of the thread's own.
void throw_code_faults();

}  // namespace towpath::os
