// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The two functions of Highway's library that its headers call, for the Python module:
// distributions ship them as a shared library only, and a wheel must run where that is not
// installed. The choice is coarser than Highway's: AVX-512, AVX2, SSE4 or the baseline.

#include <hwy/targets.h>

namespace hwy {

std::int64_t SupportedTargets() {
  std::int64_t targets = HWY_ENABLED_BASELINE;
#if HWY_ARCH_X86
  const bool has_sse4 = __builtin_cpu_supports("sse4.2") != 0;
  const bool has_avx2 = has_sse4 && __builtin_cpu_supports("avx2") != 0 &&
                        __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("bmi2") != 0;
  const bool has_avx512 =
      has_avx2 && __builtin_cpu_supports("avx512f") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512cd") != 0;
  if (has_sse4) targets |= HWY_SSSE3 | HWY_SSE4;
  if (has_avx2) targets |= HWY_AVX2;
  if (has_avx512) targets |= HWY_AVX3;
#endif
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
