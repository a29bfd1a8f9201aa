"""Runs ctest on a build folder, then pytest on tests/python, and closes with one line for both.

usage: run_tests.py --build FOLDER [--slow]
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Counts:
    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def add_junit(self, path: pathlib.Path) -> None:
        """Adds the test cases of a JUnit report; a report that is absent counts as one failure."""
        if not path.exists():
            self.failed += 1
            return
        for case in ElementTree.parse(path).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
                self.failed += 1
            elif case.find("skipped") is not None:
                self.skipped += 1
            else:
                self.passed += 1

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(command: list[str], seconds: int, environment: dict[str, str]) -> int:
    print("+", " ".join(command), flush=True)
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        print(f"run_tests: stopped after {seconds} s: {command[0]}", file=sys.stderr)
        return 124
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--slow", action="store_true", help="also what is labelled slow")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    environment = os.environ | {"HEADWAY_BUILD_DIR": str(build), "HF_HUB_OFFLINE": "1"}
    seconds = 3600 if arguments.slow else 1200

    ctest_report, pytest_report = build / "ctest.xml", build / "pytest.xml"
    for report in (ctest_report, pytest_report):
        report.unlink(missing_ok=True)
    ctest = ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error",
             "--output-junit", str(ctest_report)]
    ctest += ["-j2"] if arguments.slow else ["-j2", "-LE", "slow"]
    pytest = [sys.executable, "-m", "pytest", "-q", "tests/python", f"--junitxml={pytest_report}"]
    pytest += [] if arguments.slow else ["-m", "not slow"]

    codes = [run(ctest, seconds, environment), run(pytest, seconds, environment)]
    counts = Counts()
    counts.add_junit(ctest_report)
    counts.add_junit(pytest_report)
    print(counts.line(), flush=True)
    return 1 if any(codes) or counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
