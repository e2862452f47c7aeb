// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/ptx_table.hpp"

#include <algorithm>
#include <iterator>

namespace towpath::gpu {

namespace {

#define TOWPATH_INTEGER "u16|s16|u32|s32|u64|s64"
#define TOWPATH_WORD "u32|s32|u64|s64"
#define TOWPATH_ROUNDING "rn|rz|rm|rp"
#define TOWPATH_RELATION "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"
#define TOWPATH_COMPARED "b16|b32|b64|u16|u32|u64|s16|s32|s64|f16|bf16|f32|f64"
#define TOWPATH_NUMBER "u8|s8|u16|s16|u32|s32|u64|s64|f16|bf16|f32|f64"
#define TOWPATH_SELECTED "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"
#define TOWPATH_ACCESS                                                                   \
  "?global|shared|shared::cta|local|const=generic * ?v2|v4|v8=v1 * b8|b16|b32|b64|b128|" \
  "u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"
#define TOWPATH_MULTIMEM \
  "?weak|relaxed|acquire|release=weak ?cta|cluster|gpu|sys=sys ?global=generic"
#define TOWPATH_ATOMIC                                                                   \
  "?relaxed|acquire|release|acq_rel=relaxed ?cta|cluster|gpu|sys=gpu ?global|shared|sha" \
  "red::cta=generic add|and|or|xor|min|max|inc|dec|exch|cas !noftz * ?v2|v4|v8=v1 b16|b" \
  "32|b64|u32|s32|u64|s64|f16|f16x2|bf16|bf16x2|f32|f64"

constexpr PtxRow kRows[] = {
    // integers
    {"add", TOWPATH_INTEGER, "add<$1>", PtxForm::value, 3, 3},
    {"add", "sat s32", "add_sat<$2>", PtxForm::value, 3, 3},
    {"add", "cc " TOWPATH_WORD, "add_cc<$2>", PtxForm::value, 3, 3, false, true},
    {"addc", "!cc " TOWPATH_WORD, "addc<$2, $1>", PtxForm::value, 3, 3, false, true},
    {"sub", TOWPATH_INTEGER, "sub<$1>", PtxForm::value, 3, 3},
    {"sub", "sat s32", "sub_sat<$2>", PtxForm::value, 3, 3},
    {"sub", "cc " TOWPATH_WORD, "sub_cc<$2>", PtxForm::value, 3, 3, false, true},
    {"subc", "!cc " TOWPATH_WORD, "subc<$2, $1>", PtxForm::value, 3, 3, false, true},
    {"mul", "lo " TOWPATH_INTEGER, "mul_lo<$2>", PtxForm::value, 3, 3},
    {"mul", "hi " TOWPATH_INTEGER, "mul_hi<$2>", PtxForm::value, 3, 3},
    {"mul", "wide u16|s16|u32|s32", "mul_wide<$2>", PtxForm::value, 3, 3},
    {"mul24", "lo|hi u32|s32", "mul24_#1<$2>", PtxForm::value, 3, 3},
    {"mad", "lo|hi " TOWPATH_INTEGER, "mad_#1<$2>", PtxForm::value, 4, 4},
    {"mad", "hi sat s32", "mad_hi_sat<$3>", PtxForm::value, 4, 4},
    {"mad", "wide u16|s16|u32|s32", "mad_wide<$2>", PtxForm::value, 4, 4},
    {"mad", "lo cc " TOWPATH_WORD, "mad_cc<$3, false>", PtxForm::value, 4, 4, false, true},
    {"mad", "hi cc " TOWPATH_WORD, "mad_cc<$3, true>", PtxForm::value, 4, 4, false, true},
    {"madc", "lo !cc " TOWPATH_WORD, "madc<$3, false, $2>", PtxForm::value, 4, 4, false, true},
    {"madc", "hi !cc " TOWPATH_WORD, "madc<$3, true, $2>", PtxForm::value, 4, 4, false, true},
    {"mad24", "lo|hi u32|s32", "mad24_#1<$2>", PtxForm::value, 4, 4},
    {"sad", TOWPATH_INTEGER, "sad<$1>", PtxForm::value, 4, 4},
    {"div", TOWPATH_INTEGER, "div<$1>", PtxForm::value, 3, 3},
    {"rem", TOWPATH_INTEGER, "rem<$1>", PtxForm::value, 3, 3},
    {"abs", "s16|s32|s64", "abs<$1>", PtxForm::value, 2, 2},
    {"neg", "s16|s32|s64", "neg<$1>", PtxForm::value, 2, 2},
    {"min", TOWPATH_INTEGER, "min<$1>", PtxForm::value, 3, 3},
    {"max", TOWPATH_INTEGER, "max<$1>", PtxForm::value, 3, 3},
    {"dp4a", "u32|s32 u32|s32", "dp4a<$1, $2>", PtxForm::value, 4, 4},
    // bits
    {"and", "pred|b16|b32|b64", "bit_and<$1>", PtxForm::value, 3, 3},
    {"or", "pred|b16|b32|b64", "bit_or<$1>", PtxForm::value, 3, 3},
    {"xor", "pred|b16|b32|b64", "bit_xor<$1>", PtxForm::value, 3, 3},
    {"not", "pred|b16|b32|b64", "bit_not<$1>", PtxForm::value, 2, 2},
    {"cnot", "b16|b32|b64", "cnot<$1>", PtxForm::value, 2, 2},
    {"shl", "b16|b32|b64", "shl<$1>", PtxForm::value, 3, 3},
    {"shr", "b16|b32|b64|" TOWPATH_INTEGER, "shr<$1>", PtxForm::value, 3, 3},
    {"shf", "l|r clamp|wrap b32", "shf<$1, $2>", PtxForm::value, 4, 4},
    {"popc", "b32|b64", "popc<$1>", PtxForm::value, 2, 2},
    {"clz", "b32|b64", "clz<$1>", PtxForm::value, 2, 2},
    {"bfind", TOWPATH_WORD, "bfind<$1, false>", PtxForm::value, 2, 2},
    {"bfind", "shiftamt " TOWPATH_WORD, "bfind<$2, true>", PtxForm::value, 2, 2},
    {"brev", "b32|b64", "brev<$1>", PtxForm::value, 2, 2},
    {"bfe", TOWPATH_WORD, "bfe<$1>", PtxForm::value, 4, 4},
    {"bfi", "b32|b64", "bfi<$1>", PtxForm::value, 5, 5},
    {"lop3", "b32", "lop3", PtxForm::value, 5, 5},
    {"prmt", "b32 ?f4e|b4e|rc8|ecl|ecr|rc16=index", "prmt<$2>", PtxForm::value, 4, 4},
    // floating point
    {"add", "?" TOWPATH_ROUNDING "=rn !ftz !sat f32", "fadd<$4, $1, $2, $3>", PtxForm::value, 3, 3},
    {"add", "?" TOWPATH_ROUNDING "=rn f64", "fadd<$2, $1, false, false>", PtxForm::value, 3, 3},
    {"add", "?rn=rn !ftz !sat f16|f16x2", "fadd<$4, $1, $2, $3>", PtxForm::value, 3, 3},
    {"add", "?rn=rn bf16|bf16x2", "fadd<$2, $1, false, false>", PtxForm::value, 3, 3},
    {"sub", "?" TOWPATH_ROUNDING "=rn !ftz !sat f32", "fsub<$4, $1, $2, $3>", PtxForm::value, 3, 3},
    {"sub", "?" TOWPATH_ROUNDING "=rn f64", "fsub<$2, $1, false, false>", PtxForm::value, 3, 3},
    {"sub", "?rn=rn !ftz !sat f16|f16x2", "fsub<$4, $1, $2, $3>", PtxForm::value, 3, 3},
    {"sub", "?rn=rn bf16|bf16x2", "fsub<$2, $1, false, false>", PtxForm::value, 3, 3},
    {"mul", "?" TOWPATH_ROUNDING "=rn !ftz !sat f32", "fmul<$4, $1, $2, $3>", PtxForm::value, 3, 3},
    {"mul", "?" TOWPATH_ROUNDING "=rn f64", "fmul<$2, $1, false, false>", PtxForm::value, 3, 3},
    {"mul", "?rn=rn !ftz !sat f16|f16x2", "fmul<$4, $1, $2, $3>", PtxForm::value, 3, 3},
    {"mul", "?rn=rn bf16|bf16x2", "fmul<$2, $1, false, false>", PtxForm::value, 3, 3},
    {"fma", TOWPATH_ROUNDING " !ftz !sat f32", "fma<$4, $1, $2, $3, false>", PtxForm::value, 4, 4},
    {"fma", TOWPATH_ROUNDING " f64", "fma<$2, $1, false, false, false>", PtxForm::value, 4, 4},
    {"mad", TOWPATH_ROUNDING " !ftz !sat f32", "fma<$4, $1, $2, $3, false>", PtxForm::value, 4, 4},
    {"mad", TOWPATH_ROUNDING " f64", "fma<$2, $1, false, false, false>", PtxForm::value, 4, 4},
    {"mad", "!ftz !sat f32", "fma<$3, ::towpath_ptx::m_rn, $1, $2, false>", PtxForm::value, 4, 4},
    {"fma", "rn !ftz !sat !relu f16|f16x2", "fma<$5, $1, $2, $3, $4>", PtxForm::value, 4, 4},
    {"fma", "rn !relu bf16|bf16x2", "fma<$3, $1, false, false, $2>", PtxForm::value, 4, 4},
    {"div", TOWPATH_ROUNDING " !ftz f32", "fdiv<$3, $1, $2, false>", PtxForm::value, 3, 3},
    {"div", TOWPATH_ROUNDING " f64", "fdiv<$2, $1, false, false>", PtxForm::value, 3, 3},
    {"div", "approx|full !ftz f32", "fdiv<$3, ::towpath_ptx::m_rn, $2, false>", PtxForm::value, 3,
     3},
    {"min", "!ftz !NaN f32", "fmin<$3, $1, $2>", PtxForm::value, 3, 3},
    {"min", "f64", "fmin<$1, false, false>", PtxForm::value, 3, 3},
    {"min", "!ftz !NaN f16|f16x2", "fmin<$3, $1, $2>", PtxForm::value, 3, 3},
    {"min", "!NaN bf16|bf16x2", "fmin<$2, false, $1>", PtxForm::value, 3, 3},
    {"max", "!ftz !NaN f32", "fmax<$3, $1, $2>", PtxForm::value, 3, 3},
    {"max", "f64", "fmax<$1, false, false>", PtxForm::value, 3, 3},
    {"max", "!ftz !NaN f16|f16x2", "fmax<$3, $1, $2>", PtxForm::value, 3, 3},
    {"max", "!NaN bf16|bf16x2", "fmax<$2, false, $1>", PtxForm::value, 3, 3},
    {"abs", "!ftz f32|f16|f16x2", "fabs_of<$2, $1>", PtxForm::value, 2, 2},
    {"abs", "f64|bf16|bf16x2", "fabs_of<$1, false>", PtxForm::value, 2, 2},
    {"neg", "!ftz f32|f16|f16x2", "fneg<$2, $1>", PtxForm::value, 2, 2},
    {"neg", "f64|bf16|bf16x2", "fneg<$1, false>", PtxForm::value, 2, 2},
    {"copysign", "f32|f64", "copysign_of<$1>", PtxForm::value, 3, 3},
    {"ex2", "approx !ftz f32", "ex2<$3, $2>", PtxForm::value, 2, 2},
    {"ex2", "approx f16|f16x2", "ex2<$2, false>", PtxForm::value, 2, 2},
    {"ex2", "approx ftz bf16|bf16x2", "ex2<$3, false>", PtxForm::value, 2, 2},
    {"lg2", "approx !ftz f32", "lg2<$3, $2>", PtxForm::value, 2, 2},
    {"sin", "approx !ftz f32", "sin<$3, $2>", PtxForm::value, 2, 2},
    {"cos", "approx !ftz f32", "cos<$3, $2>", PtxForm::value, 2, 2},
    {"tanh", "approx f32|f16|f16x2|bf16|bf16x2", "tanh<$2, false>", PtxForm::value, 2, 2},
    {"rcp", "approx !ftz f32", "rcp<$3, $2>", PtxForm::value, 2, 2},
    {"rcp", TOWPATH_ROUNDING " !ftz f32", "rcp_in<$3, $1, $2>", PtxForm::value, 2, 2},
    {"rcp", TOWPATH_ROUNDING " f64", "rcp_in<$2, $1, false>", PtxForm::value, 2, 2},
    {"sqrt", "approx !ftz f32", "sqrt<$3, $2>", PtxForm::value, 2, 2},
    {"sqrt", TOWPATH_ROUNDING " !ftz f32", "sqrt_in<$3, $1, $2>", PtxForm::value, 2, 2},
    {"sqrt", TOWPATH_ROUNDING " f64", "sqrt_in<$2, $1, false>", PtxForm::value, 2, 2},
    {"rsqrt", "approx !ftz f32", "rsqrt<$3, $2>", PtxForm::value, 2, 2},
    {"rsqrt", "approx f64", "rsqrt<$2, false>", PtxForm::value, 2, 2},
    // comparisons and selections
    {"setp", TOWPATH_RELATION " ?and|or|xor=none !ftz " TOWPATH_COMPARED, "setp<$1, $2, $3, $4>",
     PtxForm::pair, 3, 4},
    {"set", TOWPATH_RELATION " ?and|or|xor=none !ftz u32|s32|f32 " TOWPATH_COMPARED,
     "set<$4, $1, $2, $3, $5>", PtxForm::value, 3, 4},
    {"selp", TOWPATH_SELECTED, "selp<$1>", PtxForm::value, 4, 4},
    {"slct", TOWPATH_SELECTED " s32", "slct<$1>", PtxForm::value, 4, 4},
    {"testp", "finite|infinite|number|notanumber|normal|subnormal f32|f64", "testp<$1, $2>",
     PtxForm::value, 2, 2},
    // moves and conversions
    {"mov", "pred|b16|b32|b64|b128|u16|u32|u64|s16|s32|s64|f16|bf16|f32|f64|f16x2|bf16x2", "",
     PtxForm::move, 2, 2},
    {"cvt", "?" TOWPATH_ROUNDING "|rni|rzi|rmi|rpi=rn !ftz !sat " TOWPATH_NUMBER " " TOWPATH_NUMBER,
     "cvt<$4, $5, $1, $2, $3, false>", PtxForm::value, 2, 2},
    {"cvt", "rn|rz relu f16|bf16 f32", "cvt<$3, $4, $1, false, false, true>", PtxForm::value, 2, 2},
    {"cvt", "rn|rz !relu f16x2|bf16x2 f32", "cvt_pair<$3, $1, $2>", PtxForm::value, 3, 3},
    {"cvt", "rna tf32 f32", "cvt_tf32", PtxForm::value, 2, 2},
    // addresses
    {"cvta", "shared|shared::cta u32|u64", "cvta_shared", PtxForm::value, 2, 2},
    {"cvta", "to shared|shared::cta u32|u64", "cvta_to_shared", PtxForm::value, 2, 2},
    {"cvta", "global|local|const u64", "mov<$2>", PtxForm::value, 2, 2},
    {"cvta", "to global|local|const u64", "mov<$3>", PtxForm::value, 2, 2},
    {"isspacep", "global|shared|shared::cta|local|const", "isspacep<$1>", PtxForm::value, 2, 2},
    // memory
    {"ld", "?weak=weak ?none=sys " TOWPATH_ACCESS, "", PtxForm::load, 2, 3},
    {"ld", "volatile ?none=sys " TOWPATH_ACCESS, "", PtxForm::load, 2, 3},
    {"ld", "relaxed|acquire cta|cluster|gpu|sys " TOWPATH_ACCESS, "", PtxForm::load, 2, 3},
    {"ld", "mmio -relaxed sys " TOWPATH_ACCESS, "", PtxForm::load, 2, 3},
    {"st", "?weak=weak ?none=sys " TOWPATH_ACCESS, "", PtxForm::store, 2, 3},
    {"st", "volatile ?none=sys " TOWPATH_ACCESS, "", PtxForm::store, 2, 3},
    {"st", "relaxed|release cta|cluster|gpu|sys " TOWPATH_ACCESS, "", PtxForm::store, 2, 3},
    {"st", "mmio -relaxed sys " TOWPATH_ACCESS, "", PtxForm::store, 2, 3},
    {"atom", TOWPATH_ATOMIC, "fetch", PtxForm::atomic, 3, 5},
    {"red", TOWPATH_ATOMIC, "", PtxForm::atomic, 2, 3},
    {"multimem",
     "-ld_reduce " TOWPATH_MULTIMEM " add|min|max|and|or|xor ?acc::f32=none *"
     " ?v2|v4|v8=v1 u32|u64|s32|s64|b32|b64|f16|bf16|f16x2|bf16x2|f32|f64",
     "multimem_load", PtxForm::multimem, 2, 2},
    {"multimem",
     "-st " TOWPATH_MULTIMEM " ?none=none ?none=none ?v2|v4|v8=v1"
     " u32|u64|s32|s64|b32|b64|f16|bf16|f16x2|bf16x2|f32|f64",
     "multimem_store", PtxForm::multimem, 2, 2},
    {"multimem",
     "-red " TOWPATH_MULTIMEM " add|min|max|and|or|xor ?none=none ?v2|v4|v8=v1"
     " u32|u64|s32|s64|b32|b64|f16|bf16|f16x2|bf16x2|f32|f64",
     "multimem_store", PtxForm::multimem, 2, 2},
    {"cp", "async ca|cg shared|shared::cta global *", "", PtxForm::copy, 3, 5},
    {"cp", "async commit_group", "", PtxForm::none, 0, 0},
    {"cp", "async wait_all", "", PtxForm::none, 0, 0},
    {"cp", "async wait_group", "", PtxForm::none, 1, 1},
    {"prefetch", "?global|local|const=generic L1|L2|L2::evict_last|L2::evict_normal", "",
     PtxForm::none, 1, 1},
    {"prefetchu", "L1", "", PtxForm::none, 1, 1},
    {"createpolicy",
     "fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged "
     "?L2::evict_first|L2::evict_unchanged=none b64",
     "no_policy", PtxForm::value, 1, 2},
    {"fence", "?sc|acq_rel|acquire|release=sc cta|cluster|gpu|sys", "fence<$2>", PtxForm::action, 0,
     0, true},
    {"membar", "cta|sys", "fence<$1>", PtxForm::action, 0, 0, true},
    {"membar", "gl", "fence<::towpath_ptx::m_gpu>", PtxForm::action, 0, 0, true},
    {"fence", "proxy alias", "", PtxForm::none, 0, 0},
    {"fence", "proxy async ?global|shared::cta|shared::cluster=none", "", PtxForm::none, 0, 0},
    // threads
    {"bar", "?cta=cta sync", "bar_sync", PtxForm::action, 1, 2, true},
    {"bar", "?cta=cta arrive", "bar_arrive", PtxForm::action, 2, 2, true},
    {"bar", "?cta=cta red popc u32",
     "bar_red<::towpath_ptx::u32, ::towpath_gpu::NamedBarrier::popc>", PtxForm::vote, 3, 4},
    {"bar", "?cta=cta red and|or pred", "bar_red<bool, ::towpath_gpu::NamedBarrier::vote_#3>",
     PtxForm::vote, 3, 4},
    {"barrier", "?cta=cta sync !aligned", "bar_sync", PtxForm::action, 1, 2, true},
    {"barrier", "?cta=cta arrive !aligned", "bar_arrive", PtxForm::action, 2, 2, true},
    {"barrier", "?cta=cta red popc !aligned u32",
     "bar_red<::towpath_ptx::u32, ::towpath_gpu::NamedBarrier::popc>", PtxForm::vote, 3, 4},
    {"barrier", "?cta=cta red and|or !aligned pred",
     "bar_red<bool, ::towpath_gpu::NamedBarrier::vote_#3>", PtxForm::vote, 3, 4},
    {"bar", "warp sync", "bar_warp_sync", PtxForm::action, 1, 1, true},
    {"vote", "sync ballot b32", "vote<::towpath_ptx::Exchange::#2>", PtxForm::value, 3, 3, true},
    {"vote", "sync all|any pred", "vote<::towpath_ptx::Exchange::#2>", PtxForm::value, 3, 3, true},
    {"vote", "sync uni pred", "vote_uni", PtxForm::value, 3, 3, true},
    {"activemask", "b32", "activemask", PtxForm::value, 1, 1},
    {"match", "any sync b32|b64", "match_any<$3>", PtxForm::value, 3, 3, true},
    {"match", "all sync b32|b64", "match_all<$3>", PtxForm::pair, 3, 3, true},
    {"shfl", "sync up|down|bfly|idx b32", "shfl<$2>", PtxForm::pair, 5, 5, true},
    {"elect", "sync", "elect", PtxForm::pair, 2, 2, true},
    {"redux", "sync add|min|max u32|s32", "redux<$2, $3>", PtxForm::value, 3, 3, true},
    {"redux", "sync and|or|xor b32", "redux<$2, $3>", PtxForm::value, 3, 3, true},
    {"nanosleep", "u32", "nanosleep", PtxForm::action, 1, 1},
    {"exit", "", "exit_thread", PtxForm::action, 0, 0},
    {"trap", "", "trap", PtxForm::action, 0, 0, true},
    {"griddepcontrol", "launch_dependents|wait", "", PtxForm::none, 0, 0},
};

struct AtomicTypes {
  std::string_view operation;
  std::string_view types;  // each between spaces
};
constexpr AtomicTypes kAtomicTypes[] = {
    {"add", " u32 s32 u64 s64 f16 f16x2 bf16 bf16x2 f32 f64 "},
    {"and", " b32 b64 "},
    {"or", " b32 b64 "},
    {"xor", " b32 b64 "},
    {"min", " u32 s32 u64 s64 f16 f16x2 bf16 bf16x2 "},
    {"max", " u32 s32 u64 s64 f16 f16x2 bf16 bf16x2 "},
    {"inc", " u32 "},
    {"dec", " u32 "},
    {"exch", " b32 b64 u32 s32 u64 s64 f32 "},
    {"cas", " b16 b32 b64 u32 s32 u64 s64 "},
};

}  // namespace

std::span<const PtxRow> ptx_rows() { return kRows; }

bool ptx_has_atomic(std::string_view operation, std::string_view type) {
  const auto* const found =
      std::find_if(std::begin(kAtomicTypes), std::end(kAtomicTypes),
                   [&](const AtomicTypes& each) { return each.operation == operation; });
  const std::size_t at =
      found == std::end(kAtomicTypes) ? std::string_view::npos : found->types.find(type);
  return at != std::string_view::npos && found->types[at - 1] == ' ' &&
         found->types[at + type.size()] == ' ';
}

}  // namespace towpath::gpu
