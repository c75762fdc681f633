"""test_summary.py JUNIT RESULTS [--slowest N]: what a run of ctest came to.

JUNIT is the file of ctest --output-junit, RESULTS the folder in which test programs left a file of GoogleTest each
(PROGRAM.xml, named after the entry of ctest): their tests count one by one, other entries as one each. Prints the slowest
tests on stderr and "PASSED FAILED SKIPPED" on stdout.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def tests_of_program(path):
    """(name, seconds, outcome) of each test in a file of GoogleTest."""
    for case in xml.parse(path).getroot().iter("testcase"):
        failed = case.find("failure") is not None
        skipped = case.get("result") == "skipped" or case.find("skipped") is not None
        outcome = "failed" if failed else "skipped" if skipped else "passed"
        yield f"{path.stem}: {case.get('classname')}.{case.get('name')}", float(case.get("time", 0)), outcome


def tests_of_run(junit, results):
    """(name, seconds, outcome) of all tests of a run of ctest."""
    outcomes = {"run": "passed", "fail": "failed"}
    for case in xml.parse(junit).getroot().iter("testcase"):
        name, seconds = case.get("name"), float(case.get("time", 0))
        outcome = outcomes.get(case.get("status"), "skipped")
        file = results / f"{name}.xml"
        tests = []
        if file.exists():
            try:
                tests = list(tests_of_program(file))
            except xml.ParseError:
                pass  # the program was killed while it wrote
        if not tests:
            yield name, seconds, outcome
            continue
        yield from tests
        # A program that crashed leaves no file, or one without a failed test in it: that counts, too.
        if outcome == "failed" and all(kind != "failed" for _, _, kind in tests):
            yield f"{name} (as a whole)", seconds, "failed"


def main():
    junit, results = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    count = int(sys.argv[4]) if len(sys.argv) > 4 and sys.argv[3] == "--slowest" else 8
    tests = list(tests_of_run(junit, results))
    slowest = sorted(tests, key=lambda test: -test[1])[:count]
    print("   slowest tests:", file=sys.stderr)
    for name, seconds, _ in slowest:
        print(f"   {seconds:7.1f} s  {name}", file=sys.stderr)
    print(*(sum(kind == wanted for _, _, kind in tests) for wanted in ("passed", "failed", "skipped")))


main()
