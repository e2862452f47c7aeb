// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "combination.hpp"

#include <complex>
#include <cstring>
#include <optional>
#include <type_traits>

namespace towpath_torch {

namespace {

using Operation = c10d::ReduceOp::RedOpType;

std::optional<int> library_type(at::ScalarType type) {
  switch (type) {
    case at::kChar: return TOWPATH_INT8;
    case at::kByte: return TOWPATH_UINT8;
    case at::kInt: return TOWPATH_INT32;
    case at::kUInt32: return TOWPATH_UINT32;
    case at::kLong: return TOWPATH_INT64;
    case at::kUInt64: return TOWPATH_UINT64;
    case at::kHalf: return TOWPATH_FLOAT16;
    case at::kBFloat16: return TOWPATH_BFLOAT16;
    case at::kFloat: return TOWPATH_FLOAT32;
    case at::kDouble: return TOWPATH_FLOAT64;
    default: return std::nullopt;
  }
}

std::optional<int> library_operation(Operation operation) {
  switch (operation) {
    case Operation::SUM:
    case Operation::AVG:
    case Operation::PREMUL_SUM: return TOWPATH_SUM;
    case Operation::PRODUCT: return TOWPATH_PROD;
    case Operation::MIN: return TOWPATH_MIN;
    case Operation::MAX: return TOWPATH_MAX;
    default: return std::nullopt;
  }
}

const Combination& self(void* context) { return *static_cast<const Combination*>(context); }

void combine_in_library(void* context, void* result, const void* a, const void* b, uint64_t size) {
  const Combination& how = self(context);
  how.api->reduce(result, a, b, size, {how.type, how.operation});
}

void divide_in_library(void* context, void* data, uint64_t size) {
  const Combination& how = self(context);
  how.api->divide(data, size, how.type, how.ranks);
}

// function(x, y) for each element; slots need not be aligned for the type.
template <typename T, typename Function>
void for_each(void* result, const void* a, const void* b, uint64_t size_bytes, Function function) {
  auto* const to = static_cast<char*>(result);
  const auto* const left = static_cast<const char*>(a);
  const auto* const right = static_cast<const char*>(b);
  for (uint64_t i = 0; i < size_bytes; i += sizeof(T)) {
    T x, y;
    std::memcpy(&x, left + i, sizeof(T));
    std::memcpy(&y, right + i, sizeof(T));
    x = function(x, y);
    std::memcpy(to + i, &x, sizeof(T));
  }
}

using ComplexHalf = c10::complex<c10::Half>;

template <typename T>
constexpr bool is_complex =
    std::is_same_v<T, ComplexHalf> || std::is_same_v<T, c10::complex<float>> ||
    std::is_same_v<T, c10::complex<double>>;
template <typename T>
constexpr bool is_fp8 = !is_complex<T> && !std::is_integral_v<T> && sizeof(T) == 1;

// What elements are computed in. Integers wrap around: where a narrow one becomes an int before it
// is multiplied, that would be undefined for 65535 * 65535.
template <typename T>
struct WideOf {
  using Type =
      std::conditional_t<std::is_integral_v<T>, uint64_t, std::conditional_t<is_fp8<T>, float, T>>;
};
template <>
struct WideOf<ComplexHalf> {
  using Type = c10::complex<float>;
};
template <typename T>
using Wide = typename WideOf<T>::Type;

template <typename T>
struct Add {
  T operator()(T x, T y) const {
    if constexpr (std::is_same_v<T, bool>)
      return x || y;
    else
      return static_cast<T>(static_cast<Wide<T>>(x) + static_cast<Wide<T>>(y));
  }
};

template <typename T>
struct Multiply {
  T operator()(T x, T y) const {
    if constexpr (std::is_same_v<T, bool>)
      return x && y;
    else
      return static_cast<T>(static_cast<Wide<T>>(x) * static_cast<Wide<T>>(y));
  }
};

// fp8 has no order of its own.
template <typename T>
bool is_less(T x, T y) {
  if constexpr (is_fp8<T>)
    return static_cast<float>(x) < static_cast<float>(y);
  else
    return x < y;
}

template <typename T>
struct Least {
  T operator()(T x, T y) const { return is_less(y, x) || y != y ? y : x; }
};

template <typename T>
struct Greatest {
  T operator()(T x, T y) const { return is_less(x, y) || y != y ? y : x; }
};

template <typename T>
struct And {
  T operator()(T x, T y) const { return static_cast<T>(x & y); }
};

template <typename T>
struct Or {
  T operator()(T x, T y) const { return static_cast<T>(x | y); }
};

template <typename T>
struct Xor {
  T operator()(T x, T y) const { return static_cast<T>(x ^ y); }
};

template <typename T, template <typename> typename Function>
void combine_elements(void*, void* result, const void* a, const void* b, uint64_t size_bytes) {
  for_each<T>(result, a, b, size_bytes, Function<T>());
}

template <typename T>
void divide_elements(void* context, void* data, uint64_t size_bytes) {
  const int64_t ranks = self(context).ranks;
  for_each<T>(data, data, data, size_bytes, [ranks](T x, T) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(x / static_cast<T>(ranks));
    else
      return static_cast<T>(static_cast<Wide<T>>(x) / static_cast<Wide<T>>(ranks));
  });
}

// As torch.distributed.ReduceOp has it.
const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::SUM: return "SUM";
    case Operation::AVG: return "AVG";
    case Operation::PRODUCT: return "PRODUCT";
    case Operation::MIN: return "MIN";
    case Operation::MAX: return "MAX";
    case Operation::BAND: return "BAND";
    case Operation::BOR: return "BOR";
    case Operation::BXOR: return "BXOR";
    case Operation::PREMUL_SUM: return "PREMUL_SUM";
    default: return "an unknown ReduceOp";
  }
}

using CombineFunction = decltype(Combination::combine);

template <typename T>
CombineFunction function_of(Operation operation) {
  // No bool lies between true and false.
  if (std::is_same_v<T, bool> && operation == Operation::AVG) return nullptr;
  switch (operation) {
    case Operation::SUM:
    case Operation::AVG:
    case Operation::PREMUL_SUM: return combine_elements<T, Add>;
    case Operation::PRODUCT: return combine_elements<T, Multiply>;
    default: break;
  }
  if constexpr (!is_complex<T>) {
    if (operation == Operation::MIN) return combine_elements<T, Least>;
    if (operation == Operation::MAX) return combine_elements<T, Greatest>;
  }
  if constexpr (std::is_integral_v<T>) {
    if (operation == Operation::BAND) return combine_elements<T, And>;
    if (operation == Operation::BOR) return combine_elements<T, Or>;
    if (operation == Operation::BXOR) return combine_elements<T, Xor>;
  }
  return nullptr;
}

template <typename T>
Combination by_element(Operation operation, int64_t ranks) {
  Combination how{};
  how.combine = function_of<T>(operation);
  how.ranks = ranks;
  if constexpr (!std::is_same_v<T, bool>) {
    if (operation == Operation::AVG) how.finish = divide_elements<T>;
  }
  return how;
}

Combination floats_by_element(at::ScalarType type, Operation operation, int64_t ranks) {
  switch (type) {
    case at::kComplexHalf: return by_element<ComplexHalf>(operation, ranks);
    case at::kComplexFloat: return by_element<c10::complex<float>>(operation, ranks);
    case at::kComplexDouble: return by_element<c10::complex<double>>(operation, ranks);
    case at::kFloat8_e4m3fn: return by_element<c10::Float8_e4m3fn>(operation, ranks);
    case at::kFloat8_e5m2: return by_element<c10::Float8_e5m2>(operation, ranks);
    case at::kFloat8_e4m3fnuz: return by_element<c10::Float8_e4m3fnuz>(operation, ranks);
    case at::kFloat8_e5m2fnuz: return by_element<c10::Float8_e5m2fnuz>(operation, ranks);
    default: return {};
  }
}

// Types that the library has come here for bit operations only.
Combination by_element(at::ScalarType type, Operation operation, int64_t ranks) {
  switch (type) {
    case at::kBool: return by_element<bool>(operation, ranks);
    case at::kByte: return by_element<uint8_t>(operation, ranks);
    case at::kChar: return by_element<int8_t>(operation, ranks);
    case at::kShort: return by_element<int16_t>(operation, ranks);
    case at::kUInt16: return by_element<uint16_t>(operation, ranks);
    case at::kInt: return by_element<int32_t>(operation, ranks);
    case at::kUInt32: return by_element<uint32_t>(operation, ranks);
    case at::kLong: return by_element<int64_t>(operation, ranks);
    case at::kUInt64: return by_element<uint64_t>(operation, ranks);
    default: return floats_by_element(type, operation, ranks);
  }
}

Combination combination_of(const towpath_group_api& api, at::ScalarType type, Operation operation,
                           int64_t ranks) {
  const auto in_library = library_type(type);
  const auto number = library_operation(operation);
  if (!in_library || !number) {
    const Combination how = by_element(type, operation, ranks);
    TORCH_CHECK(how.combine != nullptr, "towpath cannot reduce ", type, " by ", name_of(operation),
                "; the type does not define it");
    return how;
  }
  Combination how{};
  how.combine = combine_in_library;
  if (operation == Operation::AVG) how.finish = divide_in_library;
  how.api = &api;
  how.type = *in_library;
  how.operation = *number;
  how.ranks = ranks;
  return how;
}

}  // namespace

Combination& Combinations::of(at::ScalarType type, Operation operation) {
  const std::lock_guard lock(mutex_);
  const std::pair key(type, operation);
  const auto made = made_.find(key);
  if (made != made_.end()) return made->second;
  return made_.emplace(key, combination_of(api_, type, operation, ranks_)).first->second;
}

}  // namespace towpath_torch
