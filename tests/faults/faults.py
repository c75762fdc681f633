#!/usr/bin/env python3
"""faults.py KIND --command ATTMIRROR [--preload LIBRARY] [--places N] [--only NAME]: breaks attmirror and looks at what is left.

KIND is disk (calls of the system fail, the disk is full), kill (kill -9) or memory (an allocation fails). Each command of
cases.py runs once undisturbed; then once for each place, in a fresh folder. Afterwards

  - the command must have ended by itself, with exit code 3 and one sentence on standard error, or with 0 if what failed did not matter;
  - its files must be the old ones, the new ones, or such that the same command (with --resume, where there is one) gets to the
    bits of the undisturbed run;
  - where it says 0, the files and its answer must be complete.

Prints a line for each command and exits with 1 if anything else happened, with 77 if strace does not work here. N places
a command are taken, spread from the first to the last; with ATTMIRROR_NIGHTLY=1 all (200 kills and 200 allocations).
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import cases
import places
from snapshot import difference, leftovers, snapshot

USUAL = {"disk": 14, "kill": 10, "memory": 10}
NIGHTLY = {"disk": 100_000, "kill": 200, "memory": 200}
# A command of a tenth of a second that takes this long hangs.
LIMIT_SECONDS = 120


class Outcome:
    """How a command ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


class Bench:
    """One case: its folder before, its files after an undisturbed run, and what becomes of them after a fault."""

    def __init__(self, case, arguments, place):
        self.case, self.arguments, self.place = case, arguments, pathlib.Path(place)
        self.start, self.log = self.place / "start", self.place / "trace"
        self.folder = self.place / "work"  # one name for all: files hold it
        self.folder.mkdir()
        for name, text in case.files.items():
            (self.folder / name).write_text(text)
        for words in case.before:
            self.must_work(words)
        self.old = snapshot(self.folder)
        self.folder.rename(self.start)
        self.renew()
        self.answer = self.must_work(case.command, places.strace(self.log, []) if arguments.kind != "memory" else []).out
        self.new = snapshot(self.folder)
        if self.new == self.old and not self.answer:
            raise SystemExit(f"faults.py: {case.name} changes nothing")

    def renew(self):
        """A folder as it was before."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.start, self.folder, symlinks=True)

    def run(self, words, before=(), **environment):
        """Runs attmirror in the folder."""
        environment = {**os.environ, "LC_ALL": "C", **environment}
        try:
            ended = subprocess.run([*before, self.arguments.command, *words], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                   capture_output=True, text=True, errors="replace", timeout=LIMIT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return Outcome("hangs", "", "")
        return Outcome(ended.returncode, self.plain(ended.stdout), ended.stderr)

    def plain(self, text):
        """Without clock times."""
        return re.sub(r'("[a-z_]*seconds[a-z_]*":\s*)[-+0-9.eE]+', r"\1TIME", text.replace(str(self.folder), "FOLDER"))

    def must_work(self, words, before=()):
        """Where nothing is broken nothing may fail."""
        ended = self.run(words, before)
        if ended.code != 0:
            raise SystemExit(f"faults.py: attmirror {' '.join(words)} ended with {ended.code}: {ended.err}")
        return ended

    def places(self):
        """All places of this kind."""
        kind = self.arguments.kind
        if kind == "memory":
            count = self.place / "count"
            self.renew()
            self.run(self.case.command, LD_PRELOAD=self.arguments.preload, ATTMIRROR_ALLOCATIONS_FILE=str(count))
            return list(places.allocations(int(count.read_text())))
        calls = places.calls_of(self.log)
        return list(places.failures(calls, str(self.folder)) if kind == "disk" else places.kills(calls, str(self.folder)))

    def broken(self, place):
        """Runs the command with a fault. What it said on standard error is there even if that was broken, too."""
        self.renew()
        if place.allocation:
            return self.run(self.case.command, LD_PRELOAD=self.arguments.preload, ATTMIRROR_FAIL_ALLOCATION=str(place.allocation))
        self.log.unlink(missing_ok=True)
        ended = self.run(self.case.command, places.strace(self.log, place.options))
        ended.err = places.lost_sentences(self.log)
        return ended

    def try_place(self, place):
        """(outcome, what is wrong): the outcome is unchanged, complete, resumable, or not reached."""
        ended = self.broken(place)
        reached = ended.code == -9 if place.kills else place.allocation or places.was_reached(self.log)
        if not reached:
            return "not reached", ""
        now = snapshot(self.folder)
        if place.kills:
            return self.judge_files(now)
        if ended.code == 0:
            if now != self.new:
                return "wrong", f"WRONG SUCCESS: exit code 0, and {difference(self.new, now)}"
            if ended.out != self.answer or place.standard_output:
                return "wrong", f"WRONG SUCCESS: exit code 0, and its answer did not arrive: {ended.out[:80]!r}"
            return "complete", ""
        allowed = (1, 3) if place.allocation and self.case.notes_failures else (3,)
        if ended.code not in allowed:
            return "wrong", f"exit code {ended.code}: {ended.err.strip()[-300:]}"
        lines = ended.err.splitlines()
        if len(lines) != 1 or not lines[0].startswith("attmirror: ") or "internal error" in lines[0]:
            return "wrong", f"exit code {ended.code}, and not one sentence: {ended.err[-300:]!r}"
        left = leftovers(self.folder)
        if left and "unlink" not in place.what and "unfinished files may be left" not in lines[0]:
            return "wrong", f"it left {', '.join(left)}"
        return self.judge_files(now)

    def judge_files(self, now):
        """The old, the new, or on the way from one to the other."""
        if now == self.new:
            return "complete", ""
        if now == self.old:
            return "unchanged", ""
        if self.case.again is None:
            return "wrong", f"neither the old files nor the new: {difference(self.new, now)}"
        ended = self.run(self.case.again)
        if ended.code != 0:
            return "wrong", f"neither old nor new ({difference(self.new, now)}), and what goes on from there ends with {ended.code}: {ended.err.strip()}"
        after = snapshot(self.folder)
        if after != self.new:
            return "wrong", f"what went on from there has other bits: {difference(self.new, after)}"
        if self.case.cleans_up and (left := leftovers(self.folder)):
            return "wrong", f"what went on from there left {', '.join(left)}"
        return "resumable", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=USUAL)
    parser.add_argument("--command", required=True)
    parser.add_argument("--preload", default="")
    parser.add_argument("--places", type=int)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    arguments.command = os.path.abspath(arguments.command)  # commands run in folders of their own
    arguments.preload = os.path.abspath(arguments.preload)
    if arguments.kind != "memory" and (why := places.why_strace_cannot()):
        print(f"SKIPPED: {why}")
        return 77
    nightly = os.environ.get("ATTMIRROR_NIGHTLY") == "1"
    most = arguments.places or (NIGHTLY if nightly else USUAL)[arguments.kind]
    total, wrong = collections.Counter(), []
    print(f"{arguments.kind:24} {'places':>7} {'tried':>6} {'unchanged':>10} {'complete':>9} {'resumable':>10} {'not reached':>12} {'wrong':>6}")
    for case in cases.CASES:
        if arguments.only and case.name != arguments.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(case, arguments, folder)
            all_places = bench.places()
            tried = places.spread(all_places, most)
            outcomes = collections.Counter()
            for place in tried:
                outcome, why = bench.try_place(place)
                outcomes[outcome] += 1
                if why:
                    wrong.append(f"{case.name}: {place.what}: {why}")
                    print("   " + wrong[-1], flush=True)
        words = ("unchanged", "complete", "resumable", "not reached", "wrong")
        print(f"{case.name:24} {len(all_places):7} {len(tried):6} " + " ".join(
            f"{outcomes[word]:{width}}" for word, width in zip(words, (10, 9, 10, 12, 6))), flush=True)
        total.update(outcomes)
        total["places"] += len(tried)
    successes = sum("WRONG SUCCESS" in one for one in wrong)
    print(f"{total['places']} faults: {total['unchanged']} unchanged, {total['complete']} complete, {total['resumable']} resumable, "
          f"{total['not reached']} not reached, {len(wrong)} wrong, {successes} wrong successes")
    if total["not reached"] * 20 > total["places"]:
        print("too many places were not reached: the commands do not do the same each time")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
