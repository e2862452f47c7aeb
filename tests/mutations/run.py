# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that the tests notice mistakes: applies one mutation at a time and expects a test to fail.

    .venv/bin/python tests/mutations/run.py                      # every list in this folder
    .venv/bin/python tests/mutations/run.py core.toml --only exec_avg_reduce_scatter

A list is a TOML file of entries like this one:

    [[mutation]]
    id = "exec_avg_reduce_scatter"
    file = "src/towpath/collective/execute/executor.cpp"
    find = "text that occurs once in the file"
    replace = "what it becomes"
    tests = ["Executor*:SimulatedRun*", "tests/unit/python/test_algorithms.py"]
    survives = "optional: why no test can tell the difference"

A test is a GoogleTest filter, or files of pytest where it begins with "tests/". The tests must pass
without the mutation. A mutation whose tests take too long is killed; one that does not compile is
an error of the list.

The work is done on a copy of the checkout in `build-mutations/`, which is kept: the next run builds
only what has changed. Needs Python 3.11, and the virtual environment that `make build` makes.
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
    find: str
    replace: str
    tests: tuple[str, ...]
    survives: str | None = None


@dataclass(frozen=True)
class TestRun:
    """What became of some tests; `problem` is the first failure, or None."""

    problem: str | None
    seconds: float


def read_mutations(file: Path) -> list[Mutation]:
    """The entries of a list.

    Raises:
        SystemExit: a field is missing or unknown, or `find` does not occur exactly once.
    """
    mutations = []
    for fields in tomllib.loads(file.read_text(encoding="utf-8"))["mutation"]:
        try:
            mutation = Mutation(**{**fields, "tests": tuple(fields["tests"])})
        except (KeyError, TypeError) as error:
            sys.exit(f"{file.name}: entry {fields.get('id', fields)!r}: {error}")
        count = (CHECKOUT / mutation.file).read_text(encoding="utf-8").count(mutation.find)
        if count != 1:
            sys.exit(
                f"{file.name}: {mutation.id}: 'find' occurs {count} times in {mutation.file}; "
                "it must occur once"
            )
        mutations.append(mutation)
    return mutations


class Workshop:
    """A copy of the checkout, in which mutations are applied, built and tested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._baselines: dict[str, TestRun] = {}
        self._is_core_built = False

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
             "-DTOWPATH_BUILD_TESTS=ON", "-DTOWPATH_WERROR=ON",
             f"-DPython_EXECUTABLE={sys.executable}", *_compiler()],
            cwd=self._folder, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def baseline(self, test: str) -> TestRun:
        """The test without a mutation.

        Raises:
            SystemExit: it fails.
        """
        if test not in self._baselines:
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
        mutant = original.replace(mutation.find, mutation.replace)
        forgiven = "" if file.suffix == ".py" else FORGIVEN
        file.write_text(forgiven + mutant, encoding="utf-8")
        try:
            for test in mutation.tests:
                problem = self._build(test).problem
                if problem is None:
                    seconds_max = TIMES_MAX * self._baselines[test].seconds + SECONDS_MORE
                    problem = self._run(test, seconds_max).problem
                if problem is not None:
                    return problem
            return None
        finally:
            file.write_text(original, encoding="utf-8")

    def _build(self, test: str) -> TestRun:
        target = "_core" if _is_python(test) else "towpath_tests"
        run = self._command(["cmake", "--build", "build", "--target", target, "-j2"], 3600)
        if run.problem is not None:
            sys.exit(f"{target} does not build: {run.problem}")
        if _is_python(test):
            (module,) = (self._folder / "build").glob("_core*.so")
            shutil.copyfile(module, self._folder / "python" / "towpath" / module.name)
        return run

    def _run(self, test: str, seconds_max: float) -> TestRun:
        if _is_python(test):
            command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", test]
            return self._command(command, seconds_max)
        # The executables that have tests of that name; the others take no time.
        runs = []
        for program in sorted((self._folder / "build" / "tests").iterdir()):
            if not program.is_file() or not os.access(program, os.X_OK):
                continue
            command = [str(program), f"--gtest_filter={test}", "--gtest_fail_fast"]
            runs.append(self._command(command, seconds_max))
            if runs[-1].problem not in (None, NO_TEST):
                return runs[-1]
        ran = [run for run in runs if run.problem is None]
        return TestRun(None, sum(run.seconds for run in ran)) if ran else TestRun(NO_TEST, 0.0)

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
        if process.returncode == 0 and "Running 0 tests" in output:
            return TestRun(NO_TEST, seconds)
        problem = None if process.returncode == 0 else _first_failure(output, process.returncode)
        return TestRun(problem, seconds)


def _is_python(test: str) -> bool:
    return test.startswith("tests/")


def _compiler() -> list[str]:
    """The one of the checkout's build, whose compiler cache is then of use here, too."""
    cache = CHECKOUT / "build" / "CMakeCache.txt"
    found = re.search(r"^(CMAKE_CXX_COMPILER):\w+=(.+)$", cache.read_text("utf-8"), re.MULTILINE)
    return [f"-D{found[1]}={found[2]}"] if found else []


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
    parser.add_argument("--folder", type=Path, default=CHECKOUT / "build-mutations")
    return parser.parse_args()


def _is_as_listed(workshop: Workshop, mutation: Mutation) -> bool:
    """Tries a mutation and prints what became of it."""
    problem = workshop.trial(mutation)
    outcome = f"killed by {problem}" if problem else f"SURVIVES: {mutation.survives or '?'}"
    print(f"{mutation.id:32} {outcome}", flush=True)
    return (problem is None) == (mutation.survives is not None)


def main() -> int:
    """Tries the mutations; the status is 0 if exactly those survive that say why they do."""
    arguments = _parsed_arguments()
    files = [HERE / name for name in arguments.lists] or sorted(HERE.glob("*.toml"))
    mutations = [mutation for file in files for mutation in read_mutations(file)]
    if arguments.only:
        mutations = [mutation for mutation in mutations if mutation.id in arguments.only]
    arguments.folder.mkdir(exist_ok=True)
    workshop = Workshop(arguments.folder.resolve())
    workshop.prepare()
    unexpected = [each.id for each in mutations if not _is_as_listed(workshop, each)]
    expected = len(mutations) - len(unexpected)
    print(f"{expected} of {len(mutations)} as listed; others: {', '.join(unexpected) or 'none'}")
    return 1 if unexpected or not mutations else 0


if __name__ == "__main__":
    sys.exit(main())
