// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

// A program of RV64, as the simulator needs it: its segments and the addresses of its symbols.

struct Segment {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;  // as long as in memory
};

struct Program {
  std::vector<Segment> segments;
  std::map<std::string, std::uint64_t> symbols;
};

inline Program load_program(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto fail = [&](const char* what) { throw std::runtime_error(path + ": " + what); };
  if (bytes.size() < sizeof(Elf64_Ehdr)) fail("is not an ELF file");
  const auto at = [&]<typename Type>(std::uint64_t offset, Type& value) {
    if (offset + sizeof(Type) > bytes.size()) fail("ends too early");
    std::memcpy(&value, bytes.data() + offset, sizeof(Type));
  };
  Elf64_Ehdr header;
  at(0, header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_RISCV)
    fail("is not a program of RISC-V");
  Program program;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    at(header.e_phoff + std::uint64_t{header.e_phentsize} * static_cast<unsigned>(i), segment);
    if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
    if (segment.p_offset + segment.p_filesz > bytes.size()) fail("ends too early");
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(segment.p_offset);
    Segment& loaded = program.segments.emplace_back();
    loaded.address = segment.p_paddr;
    loaded.bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(segment.p_filesz));
    loaded.bytes.resize(segment.p_memsz);
  }
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section, names;
    at(header.e_shoff + std::uint64_t{header.e_shentsize} * static_cast<unsigned>(i), section);
    if (section.sh_type != SHT_SYMTAB) continue;
    at(header.e_shoff + std::uint64_t{header.e_shentsize} * section.sh_link, names);
    for (std::uint64_t offset = 0; offset < section.sh_size; offset += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      at(section.sh_offset + offset, symbol);
      program.symbols[bytes.data() + names.sh_offset + symbol.st_name] = symbol.st_value;
    }
  }
  return program;
}
