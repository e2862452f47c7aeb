# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that the tests notice mistakes: applies one mutation at a time and expects a test to fail.

    .venv/bin/python tests/mutations/run.py                      # every list in this folder
    .venv/bin/python tests/mutations/run.py chips.toml --only eth_resend_data
    .venv/bin/python tests/mutations/run.py --places src/towpath/ethernet/port.cpp Port::is_busy

A list is a TOML file of entries like this one:

    [[mutation]]
    id = "eth_resend_data"
    file = "src/towpath/ethernet/port.cpp"
    function = "Port::on_resend_timeout"
    operator = "never"
    at = 2
    tests = ["EthernetLink.*", "tests/unit/python/test_ethernet.py"]
    survives = "optional: why no test can tell the difference"

The mutation is what the operator makes of its second place in the function; without `at`, of its
first. places.py lists the operators, and `--places` prints the places of a function.

A test is a GoogleTest filter, or files of pytest where it begins with "tests/". The tests must pass
without the mutation. A mutation whose tests take too long is killed; one that does not compile is
an error of the list.

The work is done on a copy of the checkout in `build-mutations/`, which is kept: the next run builds
only what has changed. Needs Python 3.11, and the virtual environment that `make tests` makes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tomllib

from places import OPERATORS, Source

HERE = Path(__file__).parent
CHECKOUT = HERE.parent.parent
COPIED = (
    "CMakeLists.txt", "README.md", "benchmarks", "cmake", "docs", "examples", "machines",
    "pyproject.toml", "python", "rtl", "src", "tests", "tools", "validation",
)  # fmt: skip
# A mutant may take this many times as long as the original, and this much more.
TIMES_MAX = 5
SECONDS_MORE = 60
NO_TEST = "no test has that name"
DOES_NOT_COMPILE = "DOES NOT COMPILE"
# What a mutant may leave unused. The build has the flags of `make build`, -Werror among them, so
# that the compiler cache has its objects.
UNUSED = ("parameter", "variable", "but-set-variable", "but-set-parameter", "function", "value")
FORGIVEN = "".join(f'#pragma GCC diagnostic warning "-Wunused-{kind}"\n' for kind in UNUSED)
# The editable installation finds modules of the checkout before PYTHONPATH is looked at.
SITE_CUSTOMIZE = """\
import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
"""


@dataclass(frozen=True)
class Mutation:
    """One mistake, and the tests that should notice it."""

    id: str
    file: str
    function: str
    operator: str
    tests: tuple[str, ...]
    at: int = 1
    survives: str | None = None


@dataclass(frozen=True)
class TestRun:
    """What became of some tests; `problem` is the first failure, or None."""

    problem: str | None
    seconds: float


def read_mutations(file: Path) -> list[Mutation]:
    """The entries of a list.

    Raises:
        SystemExit: a field is missing or unknown.
    """
    mutations = []
    for fields in tomllib.loads(file.read_text(encoding="utf-8"))["mutation"]:
        try:
            mutations.append(Mutation(**{**fields, "tests": tuple(fields["tests"])}))
        except (KeyError, TypeError) as error:
            sys.exit(f"{file.name}: entry {fields.get('id', fields)!r}: {error}")
    return mutations


def mutant_of(mutation: Mutation, checkout: Path = CHECKOUT) -> str:
    """The mutation's file with the mistake in it.

    Raises:
        SystemExit: the file has no such function, or the function has no such place.
    """
    try:
        source = Source.read(checkout / mutation.file)
        return source.mutant(mutation.function, mutation.operator, mutation.at)
    except (OSError, KeyError, IndexError) as error:
        sys.exit(f"{mutation.id}: {mutation.file}: {type(error).__name__}: {error}")


class Workshop:
    """A copy of the checkout, in which mutations are applied, built and tested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._baselines: dict[str, TestRun] = {}
        self._programs: dict[str, list[Path]] = {}

    def prepare(self) -> None:
        """Brings the copy up to date with the checkout."""
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *COPIED],
            cwd=CHECKOUT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        names = {name for name in listed.stdout.splitlines() if (CHECKOUT / name).is_file()}
        for name in sorted(names):
            source, copy = CHECKOUT / name, self._folder / name
            if not copy.is_file() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
        for top in ("src", "tests", "python"):
            for copy in (self._folder / top).rglob("*"):
                name = str(copy.relative_to(self._folder))
                if copy.suffix in (".cpp", ".hpp", ".py") and name not in names:
                    copy.unlink()
        site = self._folder / "site"
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(SITE_CUSTOMIZE, encoding="utf-8")
        subprocess.run(
            ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DTOWPATH_BUILD_TESTS=ON", "-DTOWPATH_BUILD_PYTHON=ON", "-DTOWPATH_WERROR=ON",
             f"-DPython_EXECUTABLE={sys.executable}", *_settings()],
            cwd=self._folder, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def baseline(self, test: str) -> TestRun:
        """The test without a mutation.

        Raises:
            SystemExit: it fails.
        """
        if test not in self._baselines:
            if not _is_python(test) and not any(self._programs.values()):
                self._command(["cmake", "--build", "build", "--target", "towpath_tests"], 3600)
            self._programs[test] = [] if _is_python(test) else self._programs_with(test)
            built = self._build(test)
            run = self._run(test, 3600) if built.problem is None else built
            if run.problem is not None:
                sys.exit(f"without a mutation, {test} fails: {run.problem}")
            self._baselines[test] = run
        return self._baselines[test]

    def trial(self, mutation: Mutation) -> str | None:
        """How the tests noticed the mutation, or None if they did not."""
        for test in mutation.tests:
            self.baseline(test)
        file = self._folder / mutation.file
        original = file.read_text(encoding="utf-8")
        mutant = mutant_of(mutation, self._folder)
        file.write_text(mutant if file.suffix == ".py" else FORGIVEN + mutant, encoding="utf-8")
        try:
            for test in mutation.tests:
                if self._build(test).problem is not None:
                    return DOES_NOT_COMPILE
                seconds_max = TIMES_MAX * self._baselines[test].seconds + SECONDS_MORE
                problem = self._run(test, seconds_max).problem
                if problem is not None:
                    return problem
            return None
        finally:
            file.write_text(original, encoding="utf-8")

    def _build(self, test: str) -> TestRun:
        """Builds the module, or the programs that have the test."""
        is_python = _is_python(test)
        programs = [f"tests_{program.name}" for program in self._programs[test]]
        targets = ["_core"] if is_python else programs
        if not targets:
            return TestRun(NO_TEST, 0.0)
        run = self._command(["cmake", "--build", "build", "-j2", "--target", *targets], 3600)
        if run.problem is None and is_python:
            (module,) = (self._folder / "build").glob("_core*.so")
            shutil.copyfile(module, self._folder / "python" / "towpath" / module.name)
        return run

    def _programs_with(self, test: str) -> list[Path]:
        """The test programs that have tests of that name."""
        programs = [
            program for program in sorted((self._folder / "build" / "tests").iterdir())
            if program.is_file() and os.access(program, os.X_OK)
        ]  # fmt: skip
        ask = ["--gtest_list_tests", f"--gtest_filter={test}"]
        lists = [subprocess.run([each, *ask], capture_output=True, check=True) for each in programs]
        return [
            program for program, listed in zip(programs, lists, strict=True)
            if b"\n  " in listed.stdout
        ]  # fmt: skip

    def _run(self, test: str, seconds_max: float) -> TestRun:
        if _is_python(test):
            command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", test]
            return self._command(command, seconds_max)
        seconds = 0.0
        for program in self._programs[test]:
            command = [str(program), f"--gtest_filter={test}", "--gtest_fail_fast"]
            run = self._command(command, seconds_max)
            if run.problem is not None:
                return run
            seconds += run.seconds
        return TestRun(None, seconds)

    def _command(self, command: list[str], seconds_max: float) -> TestRun:
        path = os.pathsep.join(str(self._folder / name) for name in ("site", "python"))
        begin = time.monotonic()
        process = subprocess.Popen(
            command, cwd=self._folder, env={**os.environ, "PYTHONPATH": path}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return TestRun(f"took more than {seconds_max:.0f} s", seconds_max)
        seconds = time.monotonic() - begin
        problem = None if process.returncode == 0 else _first_failure(output, process.returncode)
        return TestRun(problem, seconds)


def _is_python(test: str) -> bool:
    return test.startswith("tests/")


def _settings() -> list[str]:
    """Those of the checkout's build, whose compiler cache is then of use here, too."""
    cache = CHECKOUT / "build" / "CMakeCache.txt"
    names = "CMAKE_CXX_COMPILER|TOWPATH_UNITY"
    found = re.findall(rf"^({names}):\w+=(.+)$", cache.read_text("utf-8"), re.MULTILINE)
    return [f"-D{name}={value}" for name, value in found]


def _first_failure(output: str, status: int) -> str:
    found = re.search(r"^(?:\[  FAILED  \]|FAILED) ([^\s,]+)", output, re.MULTILINE)
    if found:
        return found[1]
    began = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    return f"{began[-1]} (status {status})" if began else f"status {status}: {output[-300:]}"


def _parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lists", nargs="*", help="files of this folder; none: all of them")
    parser.add_argument("--only", nargs="*", metavar="ID", help="these mutations, not all")
    parser.add_argument("--places", nargs=2, metavar=("FILE", "FUNCTION"), help="print them")
    parser.add_argument("--folder", type=Path, default=CHECKOUT / "build-mutations")
    return parser.parse_args()


def _print_places(file: str, function: str) -> int:
    source = Source.read(CHECKOUT / file)
    if function not in source.functions():
        print(f"{file} has no {function}; it has {', '.join(source.functions())}")
        return 1
    for operator in OPERATORS:
        for at, place in enumerate(source.places(function, operator), 1):
            before, after = (
                source.text[place.begin : place.end].decode(),
                place.replacement.decode(),
            )
            print(f"{operator:14} {at:2}: {' '.join(before.split())} -> {' '.join(after.split())}")
    return 0


def _is_as_listed(workshop: Workshop, mutation: Mutation) -> bool:
    """Tries a mutation and prints what became of it."""
    problem = workshop.trial(mutation)
    outcome = f"SURVIVES: {mutation.survives or '?'}"
    if problem is not None:
        outcome = problem if problem == DOES_NOT_COMPILE else f"killed by {problem}"
    print(f"{mutation.id:32} {outcome}", flush=True)
    return problem != DOES_NOT_COMPILE and (problem is None) == (mutation.survives is not None)


def main() -> int:
    """Tries the mutations; the status is 0 if exactly those survive that say why they do."""
    arguments = _parsed_arguments()
    if arguments.places:
        return _print_places(*arguments.places)
    files = [HERE / name for name in arguments.lists] or sorted(HERE.glob("*.toml"))
    mutations = [mutation for file in files for mutation in read_mutations(file)]
    if arguments.only:
        mutations = [mutation for mutation in mutations if mutation.id in arguments.only]
    for mutation in mutations:
        mutant_of(mutation)
    arguments.folder.mkdir(exist_ok=True)
    workshop = Workshop(arguments.folder.resolve())
    workshop.prepare()
    unexpected = [each.id for each in mutations if not _is_as_listed(workshop, each)]
    expected = len(mutations) - len(unexpected)
    print(f"{expected} of {len(mutations)} as listed; others: {', '.join(unexpected) or 'none'}")
    return 1 if unexpected or not mutations else 0


if __name__ == "__main__":
    sys.exit(main())
