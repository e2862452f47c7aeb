// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/ptx_statement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "towpath/gpu/source_step.hpp"

namespace towpath::gpu {
namespace {

// Without the namespaces, which only lengthen the text.
std::string translated(const std::string& statement) {
  std::string text = cpp_from_ptx(statement, 7).value_or("not PTX");
  for (const std::string prefix : {"::towpath_ptx::", "::towpath_gpu::"}) {
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
      text.erase(at, prefix.size());
    }
  }
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The instructions of a statement without operands.
std::string body(const std::string& instructions) {
  const std::string text = translated("(\"" + instructions + "\")");
  EXPECT_TRUE(text.starts_with("do { ") && text.ends_with("} while (0)")) << text;
  return text.substr(5, text.size() - 17);
}

TEST(PtxStatement, OperandsAreBoundByTheirConstraints) {
  const std::string text = translated(R"(("add.s32 %0, %1, %2;" : "=r"(a[i]) : "r"(b), "n"(4)))");
  EXPECT_TRUE(contains(text, "auto&& towpath_to_0 = (a[i]); u32 towpath_operand_0 = 0;")) << text;
  EXPECT_TRUE(contains(text, "u32 towpath_operand_1 = take<u32>((b));")) << text;
  EXPECT_TRUE(contains(text,
                       "put(towpath_operand_0, add<s32>(towpath_operand_1, "
                       "towpath_operand_2));"))
      << text;
  EXPECT_TRUE(contains(text, "give(towpath_to_0, towpath_operand_0);")) << text;
}

TEST(PtxStatement, AnOperandThatIsReadAndWrittenBeginsWithItsValue) {
  const std::string text = translated(R"(("neg.f32 %0, %0;" : "+f"(x)))");
  EXPECT_TRUE(contains(text, "towpath_operand_0 = take_float<float>(towpath_to_0);")) << text;
  EXPECT_TRUE(contains(text, "give_float<float>(towpath_to_0, towpath_operand_0);")) << text;
}

TEST(PtxStatement, OperandsMayHaveNames) {
  const std::string text =
      translated(R"(("mov.b64 %[to], %[from];" : [to] "=l"(x) : [from] "l"(f(1, 2)) : "memory"))");
  EXPECT_TRUE(contains(text, "put(towpath_operand_0, mov<b64>(towpath_operand_1));")) << text;
  EXPECT_TRUE(contains(text, "take<u64>((f(1, 2)));")) << text;
}

TEST(PtxStatement, LiteralsAreJoinedAndCommentsLeftOut) {
  const std::string text =
      translated("(\"{ // a scope\\n\\t\"\n \"  .reg .pred p, q<2>; /* two */\\n\"  \"}\")");
  EXPECT_EQ(text,
            "do { bool towpath_register_1_p = 0; bool towpath_register_1_q0 = 0; bool "
            "towpath_register_1_q1 = 0; } while (0)");
}

TEST(PtxStatement, RegistersOfScopesAreTheirOwn) {
  const std::string text = body("{ .reg .b32 a; { .reg .b64 a; mov.b64 a, 1; } mov.b32 a, 2; }");
  EXPECT_TRUE(contains(text, "put(towpath_register_2_a, mov<b64>((1ull)));")) << text;
  EXPECT_TRUE(contains(text, "put(towpath_register_1_a, mov<b32>((2ull)));")) << text;
}

TEST(PtxStatement, APredicateGuardsAnInstruction) {
  const std::string text = body("{ .reg .pred p; @p exit; @!p trap; }");
  EXPECT_TRUE(contains(text, "if (towpath_register_1_p) { exit_thread(); }")) << text;
  EXPECT_TRUE(contains(text, "if (!towpath_register_1_p) { trap(")) << text;
}

TEST(PtxStatement, LabelsAreOfTheirStatement) {
  const std::string text = body("{ .reg .pred p; again: @p bra done; bra again; done: }");
  EXPECT_TRUE(contains(text, "towpath_label_7_1_again: ; ")) << text;
  EXPECT_TRUE(contains(text, "if (towpath_register_1_p) { goto towpath_label_7_1_done; }")) << text;
  EXPECT_TRUE(contains(text, "goto towpath_label_7_1_again; towpath_label_7_1_done: ;")) << text;
}

TEST(PtxStatement, ImmediatesKeepTheirBits) {
  EXPECT_TRUE(contains(body(".reg .b32 a; mov.b32 a, 0f3F800000;"), "mov<b32>(0x3F800000u)"));
  EXPECT_TRUE(contains(body(".reg .f64 a; mov.f64 a, 0d3FF0000000000000;"),
                       "mov<f64>(0x3FF0000000000000ull)"));
  EXPECT_TRUE(contains(body(".reg .f32 a; mov.f32 a, -1.5;"), "mov<f32>(Number{-1.5})"));
  EXPECT_TRUE(contains(body(".reg .b32 a; mov.b32 a, -0x1f;"), "mov<b32>((-0x1full))"));
  EXPECT_TRUE(contains(body(".reg .b32 a; mov.b32 a, 0b101U;"), "mov<b32>((0b101ull))"));
}

TEST(PtxStatement, AnAddressHasABaseAndAnOffset) {
  const std::string text = translated(
      R"(("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2 + 16];" : "=l"(a), "=l"(b) : "l"(p)))");
  EXPECT_TRUE(contains(text,
                       "load<m_acquire, m_sys, m_global, u64, 2>(towpath_operand_2, "
                       "static_cast<long long>((16ull)), "))
      << text;
  EXPECT_TRUE(contains(text, "put(towpath_operand_1, towpath_loaded.item[1]);")) << text;
  EXPECT_TRUE(contains(body(".reg .b64 p; st.shared.b8 [p-1], 3;"),
                       "static_cast<long long>((-1ull)), (3ull));"));
}

TEST(PtxStatement, HintsToCachesHaveNoEffect) {
  const std::string plain = body(".reg .b64 p; .reg .b32 a; ld.global.u32 a, [p];");
  std::string hinted =
      body(".reg .b64 p; .reg .b32 a; ld.global.nc.L1::no_allocate.L2::cache_hint.u32 a, [p], p;");
  const std::size_t at = hinted.find(".nc.L1::no_allocate.L2::cache_hint");
  ASSERT_NE(at, std::string::npos) << hinted;
  hinted.erase(at, std::string(".nc.L1::no_allocate.L2::cache_hint").size());
  EXPECT_EQ(hinted, plain);
}

TEST(PtxStatement, SpecialRegistersAreWrittenWithOneOrTwoSigns) {
  EXPECT_TRUE(contains(translated(R"(("mov.u32 %0, %%laneid;" : "=r"(x)))"), "mov<u32>(lane())"));
  EXPECT_TRUE(
      contains(translated(R"(("mov.u32 %0, %tid.x;" : "=r"(x)))"), "mov<u32>(current().thread.x)"));
}

TEST(PtxStatement, WhatIsNotModeledIsRefusedWhereItIsExecuted) {
  EXPECT_TRUE(contains(body("{ .reg .pred p; @p wgmma.fence.sync.aligned; mov.pred p, p; }"),
                       "if (towpath_register_1_p) { refuse(\"a kernel executes the PTX instruction "
                       "'wgmma.fence.sync.aligned', which Towpath does not model\""));
  EXPECT_TRUE(contains(body(".reg .b32 a; add.u32.rn a, a, a;"), "instruction 'add.u32.rn'"));
  EXPECT_TRUE(contains(body(".reg .b32 a; add.u32 a, a;"), "instruction 'add.u32'"));
  EXPECT_TRUE(contains(body(".reg .b32 a; add.u32 a, a, b;"), "the operand 'b'"));
  EXPECT_TRUE(contains(body(".reg .b32 a; mov.u32 a, %cluster_ctaid.x;"),
                       "the operand '%cluster_ctaid.x'"));
  EXPECT_TRUE(contains(body("atom.and.f32 a, [b], c;"), "'atom.and.f32'"));
  EXPECT_TRUE(contains(body(".shared .b32 a;"), "the PTX statement '.shared .b32 a'"));
}

TEST(PtxStatement, CodeOfTheHostStays) {
  for (const char* const statement :
       {R"(("" ::: "memory"))", R"(("pause"))", R"(("rep; nop" : : : "memory"))",
        R"(("cpuid" : "=a"(a), "=b"(b) : "a"(0)))", R"(("movl %1, %0" : "=r"(a) : "r"(b)))",
        R"(("__isoc99_fscanf"))", R"((".byte 0x0f, 0x0b"))"}) {
    EXPECT_FALSE(cpp_from_ptx(statement, 0)) << statement;
  }
}

TEST(PtxStatement, TheSourceStepTranslatesStatementsAndKeepsLines) {
  const std::string out = cpp_from_cuda(
      "void f() {\n  asm volatile(\"membar.gl;\\n\"\n    \"trap;\" :::\n \"memory\");\n"
      "  __asm__(\"pause\");\n  g();\n}\n",
      {});
  EXPECT_TRUE(contains(out, "fence<::towpath_ptx::m_gpu>(")) << out;
  EXPECT_TRUE(contains(out, "__asm__(\"pause\");")) << out;
  EXPECT_EQ(
      std::count(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(out.find("g();")), '\n'),
      5);
}

}  // namespace
}  // namespace towpath::gpu
