# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""PTX statements in kernels: the result of each spelling of an arithmetic instruction."""

import random
import sys
from collections.abc import Sequence

import numpy as np
import pytest

import towpath
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "e2e" / "gpu"))

import ptx_numbers  # noqa: E402
import ptx_reference as ptx  # noqa: E402

MACHINE = "dgx-h100"
VALUES = 64  # of each spelling, one for each thread
CASES_PER_KERNEL = 55

# By the width: the C++ type and the constraint of an operand.
INTEGER = {16: ("unsigned short", "h"), 32: ("unsigned", "r"), 64: ("unsigned long long", "l")}
FLOAT = {"f32": ("float", "f", "__uint_as_float", "__float_as_uint"),
         "f64": ("double", "d", "__longlong_as_double", "__double_as_longlong")}  # fmt: skip


def statement(number: int, case: ptx.Case) -> str:
    """C++ that executes a case on the operands of the thread and stores its bits."""
    lines, inputs = [], []
    for index, kind in enumerate(case.operands):
        word = f"in[{index}][{number} * {VALUES} + threadIdx.x]"
        if kind in FLOAT:
            of, constraint, convert, _ = FLOAT[kind]
            lines.append(f"{of} a{index} = {convert}({word});")
        else:
            of, constraint = INTEGER[ptx_numbers.width(kind)]
            lines.append(f"{of} a{index} = {word};")
        inputs.append(f'"{constraint}"(a{index})')
    if case.result in FLOAT:
        of, constraint, _, back = FLOAT[case.result]
        result = f"{back}(d)"
    else:
        of, constraint = INTEGER[ptx_numbers.width(case.result)]
        result = "d"
    lines.append(f'{of} d; asm("{case.text}" : "={constraint}"(d) : {", ".join(inputs)});')
    lines.append(f"out[{number} * {VALUES} + threadIdx.x] = {result};")
    return "{ " + " ".join(lines) + " }\n"


def kernels(cases: Sequence[ptx.Case]) -> tuple[str, list[str]]:
    text, names = "", []
    for begin in range(0, len(cases), CASES_PER_KERNEL):
        names.append(f"group_{begin // CASES_PER_KERNEL}")
        text += (
            f"__global__ void {names[-1]}(unsigned long long** in, unsigned long long* out) {{\n"
        )
        for number in range(begin, min(begin + CASES_PER_KERNEL, len(cases))):
            text += statement(number, cases[number])
        text += "}\n"
    return text, names


MAIN = """
#include <cstdio>
#include <vector>
int main(int argc, char** argv) {
  constexpr size_t kWords = WORDS;
  std::vector<unsigned long long> words(kWords);
  unsigned long long *in[4], **in_of_gpu, *out;
  FILE* file = fopen(argv[1], "rb");
  for (auto& each : in) {
    if (fread(words.data(), 8, kWords, file) != kWords) return 2;
    cudaMalloc(&each, 8 * kWords);
    cudaMemcpy(each, words.data(), 8 * kWords, cudaMemcpyHostToDevice);
  }
  fclose(file);
  cudaMalloc(&out, 8 * kWords);
  cudaMalloc(&in_of_gpu, sizeof in);
  cudaMemcpy(in_of_gpu, in, sizeof in, cudaMemcpyHostToDevice);
  LAUNCHES
  cudaDeviceSynchronize();
  cudaMemcpy(words.data(), out, 8 * kWords, cudaMemcpyDeviceToHost);
  file = fopen(argv[2], "wb");
  fwrite(words.data(), 8, kWords, file);
  fclose(file);
}
"""


def results(folder, cases: Sequence[ptx.Case], operands: np.ndarray) -> np.ndarray:
    text, names = kernels(cases)
    launches = " ".join(f"{name}<<<1, {VALUES}>>>(in_of_gpu, out);" for name in names)
    words = len(cases) * VALUES
    main = MAIN.replace("WORDS", str(words)).replace("LAUNCHES", launches)
    (folder / "ptx.cu").write_text(text + main)
    operands.tofile(folder / "in")
    paths = [str(folder / "in"), str(folder / "out")]
    run = towpath.kernel(folder / "ptx.cu").run_live(1, arguments=paths, timeout_s=60)
    assert run.status == 0
    return np.fromfile(folder / "out", np.uint64).reshape(len(cases), VALUES)


def random_operands(cases: Sequence[ptx.Case], seed: int) -> np.ndarray:
    chance = random.Random(seed)
    operands = np.zeros((4, len(cases), VALUES), np.uint64)
    for number, case in enumerate(cases):
        for place, kind in enumerate(case.operands):
            for value in range(VALUES):
                operands[place, number, value] = ptx_numbers.operand(
                    kind, chance, place in case.small
                )
    return operands


def differs(found: int, expected: int | None, case: ptx.Case) -> bool:
    kind = case.result
    if expected is None:  # any NaN
        return found & ptx_numbers.mask(kind) >> 1 <= 0x7FF << 52
    if found == expected:
        return False
    is_near = abs(found - expected) <= case.ulps
    return not (
        case.ulps
        and is_near
        and found >> (ptx_numbers.width(kind) - 1) == expected >> (ptx_numbers.width(kind) - 1)
    )


def test_each_spelling_has_its_meaning(tmp_path):
    cases = ptx.all_cases()
    assert len(cases) > 600
    operands = random_operands(cases, seed=1)
    found = results(tmp_path, cases, operands)
    wrong = []
    for number, case in enumerate(cases):
        for value in range(VALUES):
            bits = [int(operands[place, number, value]) for place in range(len(case.operands))]
            expected = case.meaning(*bits)
            if differs(int(found[number, value]), expected, case):
                wrong.append(
                    (case.text, [hex(b) for b in bits], hex(found[number, value]), expected)
                )
                break
    assert not wrong, (len(wrong), wrong[:10])


def random_statement(chance: random.Random, instructions: Sequence[ptx.Case]) -> ptx.Case:
    """Instructions on registers of a scope, some under a predicate, and their sum at the end."""
    names = [f"r{i}" for i in range(6)]
    steps = []
    text = "{ .reg .b32 " + ", ".join(names) + "; .reg .pred p, q; "
    text += "".join(f"mov.b32 {name}, %{1 + i % 3}; " for i, name in enumerate(names))
    for _ in range(chance.randint(4, 12)):
        left, right = chance.sample(names, 2)
        relation = chance.choice(list(ptx.RELATIONS))
        guard = chance.choice(["", "@p ", "@!p "])
        if guard:
            text += f"setp.{relation}.s32 p, {left}, {right}; "
        case = chance.choice(instructions)
        places = [chance.choice(names) for _ in range(len(case.operands) + 1)]
        instruction = case.text
        for index in reversed(range(len(places))):
            instruction = instruction.replace(f"%{index}", places[index])
        text += f"{guard}{instruction} "
        steps.append((guard, relation, left, right, case, places))
    text += "mov.b32 %0, 0; " + "".join(f"add.u32 %0, %0, {name}; " for name in names) + "}"

    def meaning(*bits: int) -> int:
        registers = {name: bits[i % 3] for i, name in enumerate(names)}
        for guard, relation, left, right, case, places in steps:
            holds = not guard or ptx.compared(relation, registers[left], registers[right], "s32")
            if holds != (guard == "@!p ") or not guard:
                registers[places[0]] = case.meaning(*(registers[p] for p in places[1:]))
        return sum(registers.values()) & ptx_numbers.mask("u32")

    return ptx.Case(text, "u32", ("u32", "u32", "u32"), meaning)


def check_random_statements(folder, count: int, seed: int) -> None:
    chance = random.Random(seed)
    instructions = [
        case
        for case in ptx.integer_cases()
        if not case.text.startswith("{")
        and all(ptx_numbers.width(kind) == 32 for kind in (case.result, *case.operands))
    ]
    cases = [random_statement(chance, instructions) for _ in range(count)]
    operands = random_operands(cases, seed)
    found = results(folder, cases, operands)
    for number, case in enumerate(cases):
        for value in range(VALUES):
            bits = [int(operands[place, number, value]) for place in range(3)]
            assert int(found[number, value]) == case.meaning(*bits), (case.text, bits)


def test_random_statements_have_their_meaning(tmp_path):
    check_random_statements(tmp_path, 40, seed=2)


@pytest.mark.long
def test_a_thousand_random_statements_have_their_meaning(tmp_path):
    check_random_statements(tmp_path, 1000, seed=3)
