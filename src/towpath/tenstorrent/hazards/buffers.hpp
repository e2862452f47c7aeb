// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/tenstorrent/hazards/allocation.hpp"
#include "towpath/tenstorrent/hazards/sent_bytes.hpp"
#include "towpath/tenstorrent/hazards/watched_kernels.hpp"

namespace towpath::tenstorrent {

// Lifetimes of buffers. Kernels on the chip of a buffer need no proof of its existence, because
// programs of a chip run one after the other. A kernel of another chip needs proof that a program
// with the buffer has started there. When the chip frees the buffer, it needs proof of the arrival
// of all sends to it. Bytes that have never been part of a buffer are not checked.
//
// Hazards: buffer_not_there, buffer_freed, and missing_handshake for words that a program sets.
class Buffers {
 public:
  Buffers(ChipRecords& records, const WatchedKernels& kernels)
      : records_(records), kernels_(kernels), chips_(records.cluster().chips.size()) {}

  // A buffer, before it is used.
  void add(int chip, const Allocation& allocation);
  // A word of these cores that a chip's program sets at its start.
  void add_word_at_start(int chip, int program, int generation,
                         const std::vector<machine::Coordinate>& cores, std::uint64_t offset);
  // The first `programs` programs of a chip have ended: the buffers that they have freed are
  // checked.
  void programs_over(int chip, int programs);

  // "writes", and the bytes.
  struct Use {
    std::string_view verb;
    L1Bytes bytes;
  };
  // A use by a kernel of the buffer's chip, within its program.
  void check_own(const KernelWatch& kernel, const Use& use) const;
  // A use by a kernel of another chip: bytes that arrive over a stream, or a word.
  void send(const KernelWatch& kernel, int chip, const Use& use, const Arrived& arrival);
  void change_word(const KernelWatch& kernel, int chip, const Use& use, const Stamp& stamp);
  // A kernel changes a word of another chip that the program there may be about to set.
  void check_word_at_start(const KernelWatch& kernel, int chip, const L1Bytes& word) const;

 private:
  // The last use of a buffer by a kernel of another chip: its end in each stream, and the words
  // that it has changed, by the kernel's place.
  struct Access {
    const KernelWatch* kernel = nullptr;
    std::string what;  // "writes bytes 0 to 63 of tile (1, 1)"
    Time at;
    std::uint64_t position = 0;
    Stamp stamp{};
  };
  struct Buffer {
    Allocation allocation;
    std::optional<Time> freed_at{};
    std::map<Stream, Access> sent{};
    std::map<Place, Access> changed{};
  };
  struct Part {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::size_t buffer = 0;
  };
  struct WordAtStart {
    int program = 0;
    int generation = 0;
    int memory = 0;
    std::uint64_t offset = 0;
  };
  struct Chip {
    std::vector<Buffer> buffers{};
    std::map<int, std::vector<Part>> parts{};  // by memory
    std::vector<WordAtStart> words_at_start{};
  };

  // The existing buffer that contains bytes of another chip. Null if there is none.
  Buffer* checked(const KernelWatch& kernel, int chip, const Use& use);
  void free(int chip, Buffer& buffer);
  std::vector<std::size_t> buffers_at(int chip, const L1Bytes& bytes) const;
  std::string other_buffer(int chip, const L1Bytes& bytes, const Buffer& buffer) const;

  ChipRecords& records_;
  const WatchedKernels& kernels_;
  std::vector<Chip> chips_;
};

}  // namespace towpath::tenstorrent
