// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/source_step.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "towpath/gpu/errors.hpp"

namespace towpath::gpu {
namespace {

std::string step(const std::string& text) { return cpp_from_cuda(text, {}); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(GpuSourceStep, ALaunchBecomesACallWithItsArguments) {
  const std::string out = step("void f() { ring<float, 4><<<dim3(2, 3), 64, 0, s>>>(a, g(b)); }");
  EXPECT_TRUE(contains(out, "LaunchConfiguration(dim3(2, 3), 64, 0, s)"));
  EXPECT_TRUE(contains(out, "{ ring<float, 4>(towpath_arguments...); },a, g(b)); }"));
}

TEST(GpuSourceStep, ALaunchWithoutArgumentsHasNone) {
  EXPECT_TRUE(contains(step("void f() { k<<<1, 1>>>(); }"), "(towpath_arguments...); }); }"));
}

TEST(GpuSourceStep, TextInLiteralsStays) {
  const std::string text = "const char* a = \"k<<<1, 1>>>()\"; char b = '\"'; int c = 1'000;";
  EXPECT_TRUE(contains(step(text), text));
  const std::string raw = "const char* a = R\"x(k<<<1>>>() \")x\";";
  EXPECT_TRUE(contains(step(raw), raw));
}

TEST(GpuSourceStep, SharedVariablesAreReferencesIntoTheBlock) {
  const std::string out = step("void f() { __shared__ float a[4][5], b; a[0][0] = b; }");
  EXPECT_TRUE(contains(out, "float a[4][5], b; }; towpath_slot_0& towpath_slot_0_used = "));
  EXPECT_TRUE(contains(out, "auto& a = towpath_slot_0_used.a; auto& b = towpath_slot_0_used.b;"));
}

TEST(GpuSourceStep, DynamicSharedMemoryIsAPointer) {
  const std::string out =
      step("void f() { extern __shared__ __attribute__((aligned(16))) unsigned char bytes[]; }");
  EXPECT_TRUE(contains(out, "unsigned char * const bytes = static_cast<"));
  EXPECT_FALSE(contains(out, "extern"));
}

TEST(GpuSourceStep, SharedVariablesOfAFileAreCalls) {
  const std::string out = step(
      "namespace a { extern __shared__ S s; __shared__ S s; extern __shared__ int x[]; }\n"
      "void f() { g(&a::s, b.s, p->s, a::x[1]); }");
  EXPECT_TRUE(contains(out, "g(&a::towpath_shared_s(), b.s, p->s, a::towpath_shared_x()[1]);"))
      << out;
  EXPECT_TRUE(
      contains(out, "inline auto& towpath_shared_s() { return ::towpath_gpu::file_shared<"));
  EXPECT_EQ(out.find("auto& towpath_shared_s()"), out.rfind("auto& towpath_shared_s()"));
}

TEST(GpuSourceStep, AnExternSharedObjectIsAReference) {
  const std::string out = step("void f() { extern __shared__ Storage storage; }");
  EXPECT_TRUE(contains(out, "Storage & storage = *static_cast<")) << out;
}

TEST(GpuSourceStep, KernelsAreRegisteredByTheirNames) {
  const std::string out = step("namespace a { __global__ void k(int* p, float f) { if (p) {} } }");
  EXPECT_TRUE(contains(out, "(\"a::k\", static_cast<void (*)(int* p, float f)>(a::k))"));
}

TEST(GpuSourceStep, AGridConstantIsTakenByReference) {
  const std::string out = step(
      "# 1 \"a.cu\"\nnamespace a { extern \"C\" __global__ void k(int* p, S __grid_constant__ "
      "const s)\n"
      "{ *p = s.x; } __global__ void q(const __grid_constant__ S s); }");
  EXPECT_TRUE(contains(out, "static void towpath_body_k(int* p, S  const & s); extern \"C\""))
      << out;
  EXPECT_TRUE(contains(out, "void k(int* p, S  const s) { towpath_body_k(p, s); }")) << out;
  EXPECT_TRUE(contains(out, "towpath_body_k(int* p, S  const & s)\n{ *p = s.x; }")) << out;
  EXPECT_TRUE(
      contains(out, "(a::k), static_cast<void (*)(int* p, S  const & s)>(a::towpath_body_k)"))
      << out;
  EXPECT_TRUE(contains(out, "void q(const  S s);")) << out;
}

TEST(GpuSourceStep, TemplatesAreRegisteredWhereAnInstanceIsNamed) {
  const std::string text = "template <typename T> __global__ void k(T* p) {}";
  EXPECT_FALSE(contains(step(text), "Registration"));
  EXPECT_TRUE(contains(cpp_from_cuda(text, {"k<float>"}), "(\"k<float>\", k<float>)"));
}

TEST(GpuSourceStep, AnInstanceIsRegisteredWhereAProgramTakesItsAddress) {
  const std::string text =
      "template <typename T> __global__ void k(T* p) {}\n"
      "void f() { g((void const*)&k<a::B<int>>); k<int><<<1, 2>>>(p); } int main() {}";
  const std::string out = cpp_from_cuda(text, {}, true);
  EXPECT_TRUE(contains(out, "g((void const*)::towpath_gpu::registered(&k<a::B<int>>));")) << out;
  EXPECT_TRUE(contains(out, "{ k<int>(towpath_arguments...); }")) << out;
  EXPECT_TRUE(contains(out, "int main() {}")) << out;
}

TEST(GpuSourceStep, MainIsRenamedAndReturnsZeroAtItsEnd) {
  const std::string out = step("int main(int argc, char** argv) { if (argc) { } }");
  EXPECT_TRUE(contains(out, "int towpath_gpu_user_main(int argc, char** argv)"));
  EXPECT_TRUE(contains(out, " return 0; }"));
  EXPECT_TRUE(contains(out, "towpath_gpu_user_main(argc, argv)"));
  EXPECT_FALSE(contains(step("struct s { int main() { return 1; } };"), "towpath_gpu_main"));
}

TEST(GpuSourceStep, FunctionsThatNothingNamesAreLeftOut) {
  const std::string header =
      "__towpath_optional__ static inline void nvshmem_a(int x) { }\n"
      "__towpath_optional__ static inline void nvshmem_b(int x) { }\n";
  const std::string out = step(header + "void f() { nvshmem_b(1); }");
  EXPECT_FALSE(contains(out, "nvshmem_a"));
  EXPECT_TRUE(contains(out, "static inline void nvshmem_b(int x) { }"));
}

TEST(GpuSourceStep, LinesStayWhereTheyWere) {
  const std::string text =
      "void f() {\n  k<<<1,\n     2>>>(a,\n b);\n  __shared__ int x[\n 4];\n  g();\n}\n";
  const std::string out = step(text);
  const auto line_of = [](const std::string& in) {
    return std::count(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(in.find("g();")), '\n');
  };
  EXPECT_EQ(line_of(out), line_of(text));
}

TEST(GpuSourceStep, ALaunchThatCannotBeReadNamesItsLine) {
  try {
    step("# 7 \"a.cu\"\nvoid f() {\n  k<<<1, 2>>>;\n}");
    FAIL() << "nothing was thrown";
  } catch (const KernelError& error) {
    EXPECT_EQ(error.kind(), KernelError::Kind::compilation);
    EXPECT_TRUE(contains(error.what(), "a.cu:8")) << error.what();
    EXPECT_TRUE(contains(error.what(), "in parentheses")) << error.what();
  }
}

}  // namespace
}  // namespace towpath::gpu
