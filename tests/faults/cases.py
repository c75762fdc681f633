"""The commands that the tests of faults break: short ones, of every kind that leaves files.

Each runs in a folder of its own, on what prepare() made there, with one thread: so that its n-th call of the system is the
same one each time.
"""
import dataclasses

TINY_SWEEP = """[data]
generator = "sphere"
samples = 4
tokens = 3
dim = 3
[train]
normalized = true
steps = 30
[grid]
seed = "1:3"
p = [2, 3]
[record]
solutions = ["own"]
curves = ["own.bregman"]
steps = [0, 10, 30]
"""

DATA = ["generate", "--samples", "5", "--tokens", "4", "--dim", "3", "--seed", "1", "-o", "data.npz"]
OTHER_DATA = ["generate", "--samples", "4", "--tokens", "3", "--dim", "3", "--seed", "2", "-o", "data.npz"]
TRAIN = ["train", "data.npz", "--p", "3", "--normalized", "--record", "every:10", "--checkpoint-every", "0", "--quiet", "-o", "run"]
PATH = ["path", "data.npz", "--norm", "2", "--radii", "1:100:3", "--quiet", "-o", "path"]
NEXT_TOKEN = ["next-token", "--vocab", "6", "--sentences", "12", "--steps", "20", "--ov-steps", "20",
              "--record", "every:10", "--quiet", "-o", "next"]
SWEEP = ["sweep", "sweep.toml", "--threads", "1", "--quiet", "-o", "results.db"]
REPRODUCE = ["reproduce", "p2-lemma", "--quick", "--threads", "1", "--quiet", "-o", "out"]
MARGIN = ["margin", "data.npz", "--norm", "3", "--select", "global", "--quiet", "-o", "svm.npz"]
REPORT = ["report", "run", "--quiet", "-o", "report.html"]


def changed(words, option, value):
    """The same command with another value of an option."""
    at = words.index(option) + 1
    return words[:at] + [value] + words[at + 1:]


@dataclasses.dataclass(frozen=True)
class Case:
    """`before` makes what is there, `command` is broken, `again` is what a user would do next.

    Without `again` the files are the old ones or the new ones, whatever happened. With it there may be something in
    between, from which `again` gets to the new ones.
    """
    name: str
    command: list
    before: list = dataclasses.field(default_factory=list)
    again: list = None
    files: dict = dataclasses.field(default_factory=dict)
    # Whether the next writer of the folder removes what a killed one left unfinished. Beside a file of the user's own it stays.
    cleans_up: bool = True
    # A run of a sweep, or an experiment, for which memory did not suffice is noted as failed, and the rest goes on: exit code 1.
    notes_failures: bool = False


CASES = [
    Case("generate", DATA),
    Case("generate, over a file", DATA, before=[OTHER_DATA]),
    Case("train", TRAIN + ["--steps", "40"], before=[DATA], again=TRAIN + ["--steps", "40", "--resume"]),
    Case("train --overwrite", TRAIN + ["--steps", "40", "--overwrite"], before=[DATA, TRAIN + ["--steps", "20", "--lr", "0.3"]],
         again=TRAIN + ["--steps", "40", "--overwrite"]),
    Case("train --resume", TRAIN + ["--steps", "40", "--resume"], before=[DATA, TRAIN + ["--steps", "20"]],
         again=TRAIN + ["--steps", "40", "--resume"]),
    Case("margin", MARGIN, before=[DATA]),
    Case("margin, over a file", MARGIN, before=[DATA, changed(MARGIN, "--norm", "2")]),
    Case("path", PATH, before=[DATA], again=PATH + ["--overwrite"]),
    Case("path --overwrite", PATH + ["--overwrite"], before=[DATA, changed(PATH, "--radii", "1:10:2")], again=PATH + ["--overwrite"]),
    Case("next-token", NEXT_TOKEN, again=NEXT_TOKEN + ["--resume"]),
    Case("next-token --overwrite", NEXT_TOKEN + ["--overwrite"], before=[changed(NEXT_TOKEN, "--sentences", "9")],
         again=NEXT_TOKEN + ["--overwrite"]),
    Case("sweep", SWEEP, files={"sweep.toml": TINY_SWEEP}, again=SWEEP + ["--resume"], notes_failures=True),
    Case("sweep --overwrite", SWEEP + ["--overwrite"], files={"sweep.toml": TINY_SWEEP, "other.toml": TINY_SWEEP.replace("1:3", "4:7")},
         before=[[word.replace("sweep.toml", "other.toml") for word in SWEEP]], again=SWEEP + ["--overwrite"], notes_failures=True),
    Case("sweep --export", ["sweep", "results.db", "--export", "csv", "--quiet", "-o", "rows.csv"], files={"sweep.toml": TINY_SWEEP},
         before=[SWEEP]),
    Case("reproduce", REPRODUCE, again=REPRODUCE, notes_failures=True),
    Case("report", REPORT, before=[DATA, TRAIN + ["--steps", "20"]], again=REPORT + ["--overwrite"], cleans_up=False),
    Case("report --overwrite", REPORT + ["--overwrite"],
         before=[DATA, TRAIN + ["--steps", "20"], REPORT, TRAIN + ["--steps", "40", "--resume"]],
         again=REPORT + ["--overwrite"], cleans_up=False),
    # Nothing but an answer on standard output.
    Case("compare --json", ["compare", "run", "svm.npz", "--json"], before=[DATA, TRAIN + ["--steps", "20"], MARGIN]),
]
