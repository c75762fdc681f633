#!/usr/bin/env python3
"""training_study.py: runs the trainings of a study and keeps their records, by default those of docs/results/imdb.

  training_study.py run --trainer PROGRAM --data FOLDER -o RUNS [--jobs N] [--seconds S] [--only WORD,...]
      runs the planned trainings that have not finished, several at once; call it again to go on. Learning rates, and
      what else a search decides, are written into configs/ as soon as the tuning runs of an optimizer have finished.
  training_study.py choose RUNS
      shows what the tuning runs reached, and writes the settings that won into configs/.
  training_study.py collect RUNS [-o FOLDER]
      writes runs.csv, one row a training, and curves.csv, one row an epoch; sentences.csv, attention.csv and
      histograms.csv where P1's sentences were scored, where attention was measured and where images were trained on.
      Into the study's folder it adds: trainings that are recorded there and not in RUNS stay. A FOLDER has those of
      RUNS alone.

PROGRAM is attmirror, attmirror-deep, or the attmirror_deep_train of tests/device. The folder of the data has
imdb-train.safetensors and imdb-test.safetensors (or train.tsv.xz and test.tsv.xz), bert-base-uncased-vocab.txt and
p1_sentences.tsv; a study that reads SST-2 as well has its files there with sst2 for imdb. For a study of images
(data = "images" in its plan.toml) it has CIFAR-10's data_batch_1.bin to data_batch_5.bin and test_batch.bin, which may be
packed (.bin.xz). WORD is a role (main, tuning, repeat, ablation, longer, transfer), a config or the id of a training:
md-1.1-s1. Python's standard library is all that it needs.
"""
import argparse
import concurrent.futures
import datetime
import json
import lzma
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import study_plan
import study_records
import study_search
from study_plan import StudyError

DATA_FILES = {
    "train": ("imdb-train.safetensors", "train.safetensors", "train.tsv.xz", "train.tsv"),
    "test": ("imdb-test.safetensors", "test.safetensors", "test.tsv.xz", "test.tsv", "dev.tsv"),
    "vocabulary": ("bert-base-uncased-vocab.txt", "vocab.txt"),
    "sentences": ("p1_sentences.tsv",),
}


def find_data(folder, other=""):
    """The files of the data by what they are; `other` is in the place of imdb in their names."""
    found = {}
    for what, names in DATA_FILES.items():
        if other and what in ("train", "test"):
            names = (f"{other}-{what}.safetensors",)
        paths = [pathlib.Path(folder, name) for name in names if pathlib.Path(folder, name).is_file()]
        if not paths:
            raise StudyError(f"{folder} has no file for {what}: expected {' or '.join(names)}")
        found[what] = paths[0].resolve()
    return found


def find_images(folder):
    """The folder of CIFAR-10, which the trainer takes as a whole; the files must all be there."""
    folder = pathlib.Path(folder).resolve()
    for number in range(1, 6):
        if not list(folder.glob(f"data_batch_{number}.bin")) + list(folder.glob(f"data_batch_{number}.bin.xz")):
            raise StudyError(f"{folder} has no file for train: expected data_batch_{number}.bin or data_batch_{number}.bin.xz")
    if not list(folder.glob("test_*.bin")) + list(folder.glob("test_*.bin.xz")):
        raise StudyError(f"{folder} has no file for test: expected test_batch.bin or test_batch.bin.xz")
    return {"train": folder, "test": folder}


def unpacked_images(folder, place):
    """The images of the folder as files that are not packed, in `place` where any is: each training reads them anew, and
    unpacking them takes 10 seconds, for which a GPU would wait."""
    packed = [path for path in folder.glob("*.bin.xz") if not path.with_suffix("").is_file()]
    if not packed:
        return folder

    def unpack(path):
        try:
            with lzma.open(path) as file, open(place / path.stem, "wb") as unpacked:
                shutil.copyfileobj(file, unpacked)
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise StudyError(f"cannot unpack {path}: {error}") from None

    for path in folder.glob("*.bin"):
        (place / path.name).symlink_to(path)
    with concurrent.futures.ThreadPoolExecutor() as workers:
        list(workers.map(unpack, packed))
    return place


def command_of(trainer):
    """The words before train, score and histogram."""
    path = pathlib.Path(trainer if pathlib.Path(trainer).is_file() else shutil.which(trainer) or trainer)
    if not path.is_file():
        raise StudyError(f"there is no program {trainer}: give attmirror, attmirror-deep or attmirror_deep_train by path")
    return [str(path.resolve())] + (["deep"] if path.name == "attmirror" else [])


def answer_of(command, environment):
    """What a command with --json prints; None where it fails, with its message on stderr."""
    done = subprocess.run(command + ["--json"], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"training_study.py: {done.stderr.strip() or done.stdout.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def device_name(device):
    """"cuda:0" as the name of the GPU, where nvidia-smi knows it."""
    if not device.startswith("cuda"):
        return "CPU"
    try:
        names = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
        return names.stdout.splitlines()[0].strip()
    except (OSError, IndexError):
        return device


def state_bytes(checkpoint):
    """What the state of the optimizer takes in a checkpoint; None where there is none. A safetensors file begins with the
    length of its header, which says where everything else is."""
    try:
        with open(checkpoint, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    except OSError:
        return None
    places = [entry["data_offsets"] for name, entry in header.items() if name.startswith("optimizer.")]
    return sum(end - begin for begin, end in places)


def percent(share):
    return "-" if share is None else f"{100 * share:.2f} %"


class Study:
    """Runs trainings, several at once, until all are done or the time is up."""

    def __init__(self, plan, options):
        self.plan = plan
        self.runs_folder = pathlib.Path(options.output)
        self.trainer = command_of(options.trainer)
        self.data = find_images(options.data) if plan.data == "images" else find_data(options.data)
        self.jobs = options.jobs
        self.seconds = options.seconds
        self.threads = max(1, (os.cpu_count() or 1) // options.jobs)
        # Scores are computed on the CPU, beside other trainings.
        self.environment = os.environ | {"OMP_NUM_THREADS": str(self.threads)}
        self.commit = options.commit or answer_of(self.trainer[:1] + ["--version"], self.environment)["commit"]
        self.named = set(options.only or ())
        known = {word for run in plan.runs for word in (run.role, run.config, run.id)}
        known |= {word for search in plan.searches for word in ("tuning", search.config)}
        for word in options.only or ():
            if word not in known:
                raise StudyError(f"--only has {word}: expected roles, configs or ids of trainings in plan.toml")
        self.pending = [run for run in plan.runs if self.is_wanted(run, options.only)]
        self.searches = [search for search in plan.searches if not options.only
                         or {"tuning", search.config} & set(options.only)]
        others = sorted({run.data for run in self.pending if run.data})
        self.other_data = {other: find_data(options.data, other) for other in others}
        self.changed = threading.Condition()
        self.running = {}  # id -> process
        self.searching = set()  # ids of the trainings of searches that were begun
        self.active = 0
        self.stopping = False
        self.failed = 0

    def is_wanted(self, run, words):
        chosen = not words or bool({run.role, run.config, run.id} & set(words))
        return chosen and not study_plan.is_finished(study_plan.read_record(study_plan.record_path(self.runs_folder, run)))

    def is_ready(self, run):
        """A main run waits for the settings of its config, unless it is named: then those of configs/ will do."""
        if run.role == "tuning" or run.id in self.named:
            return True
        if any(search.config == run.config for search in self.searches):
            return False
        if not self.plan.tuning_of(run.config):
            return True
        chosen = study_plan.choose_rate(self.plan, self.runs_folder, run.config)
        if chosen and study_plan.write_settings(self.plan, run.config, {"optimizer.lr": chosen[1]}):
            print(f"{run.config}: learning rate {chosen[1]}", flush=True)
        return chosen is not None

    def next_of_searches(self):
        """The next training of the search that has had the fewest, of those that have none running; None: they all wait
        or have ended."""
        candidates = []
        for search in list(self.searches):
            run, tried = study_search.progress(search, lambda run: study_plan.last_validation(self.runs_folder, run))
            if run is None:
                self.searches.remove(search)
                settings, accuracy = study_search.winner(search, tried)
                if study_plan.write_settings(self.plan, search.config, settings):
                    shown = ", ".join(f"{key} {value}" for key, value in settings.items())
                    print(f"{search.config}: {percent(accuracy)} with {shown}, of {len(tried)}", flush=True)
            elif run.id not in self.searching:
                candidates.append((search.priority, len(tried), run))
        return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None

    def next_run(self):
        """The first run that can start; waits for one where running trainings may make it ready. None: no more."""
        with self.changed:
            while not self.stopping:
                if run := self.next_of_searches():
                    self.searching.add(run.id)
                    self.active += 1
                    return run
                for run in self.pending:
                    if self.is_ready(run):
                        self.pending.remove(run)
                        self.active += 1
                        return run
                if not self.active:
                    return None
                self.changed.wait()
            return None

    def train_command(self, run):
        folder = self.runs_folder / run.id
        data = self.other_data[run.data] if run.data else self.data
        settings = [f"data.train={data['train']}", f"data.test={data['test']}", f"train.seed={run.seed}",
                    f"train.threads={self.threads}", *run.set]
        # Token files know their vocabulary, and refuse a second one; images have none.
        if "vocabulary" in data and data["train"].suffix != ".safetensors":
            settings.append(f"data.vocabulary={data['vocabulary']}")
        if run.lr is not None:
            settings.append(f"optimizer.lr={run.lr}")
        command = self.trainer + ["train", str(self.plan.config_path(run.config)), "-o", str(folder), "--quiet"]
        for setting in settings:
            command += ["--set", setting]
        if (folder / "checkpoint.safetensors").exists():
            command.append("--resume")
        elif folder.exists():
            command.append("--overwrite")
        return command

    def train(self, run):
        """Runs one training to its end or to the end of the time, and writes its record."""
        with self.changed:
            if self.stopping:
                return
            # A session of its own: Ctrl-C reaches us alone, and we end the trainings in order.
            process = subprocess.Popen(self.train_command(run), env=self.environment, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, start_new_session=True)
            self.running[run.id] = process
        message = process.communicate()[1].strip()
        with self.changed:
            del self.running[run.id]
        record = self.record_of(run, process.returncode, message)
        if study_plan.is_measured(record):
            weights = str(self.runs_folder / run.id / "final.safetensors")
            if study_plan.is_scored(record):
                record["score"] = answer_of(self.trainer + ["score", weights, "--sentences", str(self.data["sentences"]),
                                                            "--vocabulary", str(self.data["vocabulary"])], self.environment)
                record["reviews"] = self.score_on_reviews(run, weights)
            record["weights"] = answer_of(self.trainer + ["histogram", weights], self.environment)
        study_plan.write_atomically(study_plan.record_path(self.runs_folder, run), json.dumps(record) + "\n")
        # A search leaves hundreds of trainings whose weights nobody reads.
        if run.label and study_plan.is_finished(record):
            shutil.rmtree(self.runs_folder / run.id)
        self.report(run, record)

    def score_on_reviews(self, run, weights):
        """The score on test reviews, with the words that training reviews give. None where the data are no token files,
        which would be made anew for each training, and for a training on other data, whose texts are no reviews."""
        files = [self.data[what] for what in ("train", "test", "vocabulary")]
        if run.data or any(file.suffix != ".safetensors" for file in files[:2]):
            return None
        train, test, vocabulary = map(str, files)
        return answer_of(self.trainer + ["score", weights, "--reviews", test, "--words-from", train, "--vocabulary", vocabulary,
                                         "--threads", str(self.threads)], self.environment)

    def record_of(self, run, returncode, message):
        folder = self.runs_folder / run.id
        record = {"id": run.id, "config_id": run.config, "role": run.role, "seed": run.seed,
                  "lr": run.lr or 0, "data": run.data, "commit": self.commit,
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "status": "failed",
                  "message": "", "device": "", "config": None, "results": None, "epochs": [], "score": None, "reviews": None,
                  "weights": None}
        record["config"] = study_plan.read_record(folder / "config.json")
        record["results"] = study_plan.read_record(folder / "results.json")
        if (folder / "metrics.jsonl").exists():
            lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            record["epochs"] = [json.loads(line) for line in lines]
        if record["results"]:
            record["device"] = device_name(record["results"]["device"])
        record["state_bytes"] = state_bytes(folder / "checkpoint.safetensors")
        stopped = returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT) or (self.stopping and returncode < 0)
        if returncode in (0, 1) and record["results"]:
            trial = record["results"]["trials"][0]["status"]
            record["status"] = "unfinished" if trial == "running" else trial
        elif stopped:
            record["status"] = "unfinished"
        if record["status"] == "unfinished":
            record["message"] = "stopped before its end"
        elif record["status"] == "failed":
            # The files of this machine mean nothing elsewhere.
            said = message.replace(f"{self.plan.folder}/", "").replace(f"{self.runs_folder}/", "")
            record["message"] = said.splitlines()[-1] if said else f"exit code {returncode}"
        return record

    def report(self, run, record):
        trial = record["results"]["trials"][0] if record["results"] and record["results"]["trials"] else {}
        words = [f"{run.id:<40} {record['status']:<16}", f"{trial.get('epochs', 0):>4} epochs"]
        if run.role == "tuning":
            reached = "validation_accuracy" if run.label else "best_validation_accuracy"
            words.append(f"validation {percent(trial.get(reached))}")
        else:
            words.append(f"best {percent(trial.get('best_test_accuracy'))}  last {percent(trial.get('test_accuracy'))}")
        if record["score"]:
            words.append(f"score {record['score']['models'][0]['published_way']['mean']:.3f}")
        words.append(f"{trial.get('seconds', 0):.0f} s")
        print("  ".join(words + ([record["message"]] if record["message"] else [])), flush=True)
        if record["status"] == "failed":
            self.failed += 1

    def next_or_stop(self):
        """The next run; none, and an end of all, where the plan or its configs are wrong."""
        try:
            return self.next_run()
        except StudyError as error:
            print(f"training_study.py: {error}", file=sys.stderr)
            self.failed += 1
            self.stop()
            return None

    def work(self):
        while run := self.next_or_stop():
            try:
                self.train(run)
            except Exception as error:  # of this run alone: the others go on
                print(f"training_study.py: {run.id}: {error}", file=sys.stderr)
                self.failed += 1
            with self.changed:
                self.active -= 1
                self.changed.notify_all()

    def stop(self):
        """Ends all trainings in their next step; each leaves a checkpoint."""
        with self.changed:
            self.stopping = True
            for process in self.running.values():
                process.send_signal(signal.SIGTERM)
            self.changed.notify_all()

    def run(self):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="training-study-") as place:
            if self.plan.data == "images" and (self.pending or self.searches):
                self.data = dict.fromkeys(self.data, unpacked_images(self.data["train"], pathlib.Path(place)))
            return self.run_until_stopped(begin)

    def run_until_stopped(self, begin):
        self.runs_folder.mkdir(parents=True, exist_ok=True)
        signalled = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: signalled.set())
        workers = [threading.Thread(target=self.work) for _ in range(self.jobs)]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.05)
            late = self.seconds and time.monotonic() - begin > self.seconds
            if (late or signalled.is_set()) and not self.stopping:
                self.stop()
        if self.pending and not self.stopping:
            print(f"waiting for the tuning runs of their optimizers: {', '.join(run.id for run in self.pending)}")
        left = sum(self.is_wanted(run, None) for run in self.plan.runs)
        print(f"{len(self.plan.runs) - left} of {len(self.plan.runs)} trainings have finished", flush=True)
        return 1 if self.failed or (self.pending and not self.stopping) else 0


def choose(plan, runs_folder):
    """Prints the tuning runs, and writes the settings that won."""
    if not pathlib.Path(runs_folder).is_dir():
        raise StudyError(f"there is no folder {runs_folder}")
    if not plan.searches and not any(run.role == "tuning" for run in plan.runs):
        raise StudyError(f"{plan.folder} has nothing to choose: there are no tuning runs in its plan.toml")
    for config in dict.fromkeys(run.config for run in plan.runs if run.role == "tuning"):
        chosen = study_plan.choose_rate(plan, runs_folder, config)
        if chosen is None:
            print(f"{config}: not all tuning runs have finished")
            continue
        rates, best = chosen
        study_plan.write_settings(plan, config, {"optimizer.lr": best})
        shown = ", ".join(f"{lr}: {'diverged' if accuracy is None else percent(accuracy)}" for lr, accuracy in rates)
        edge = " (at the end of the grid)" if best in (rates[0][0], rates[-1][0]) else ""
        print(f"{config}: learning rate {best}{edge}; validation accuracies {shown}")
    for search in plan.searches:
        left, tried = study_search.progress(search, lambda run: study_plan.last_validation(runs_folder, run))
        if left is not None:
            print(f"{search.config}: {len(tried)} of at most {search.trials} tuning runs have finished")
            continue
        settings, accuracy = study_search.winner(search, tried)
        study_plan.write_settings(plan, search.config, settings)
        shown = ", ".join(f"{key} {value}" for key, value in settings.items())
        print(f"{search.config}: {percent(accuracy)} with {shown}, the best of {len(tried)}")
    return 0


def positive(text):
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = pathlib.Path(__file__).resolve().parent.parent / "docs" / "results" / "imdb"
    parser.add_argument("--study", default=default, help="folder with plan.toml and configs/; by default docs/results/imdb")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the trainings that have not finished")
    run.add_argument("--trainer", required=True, metavar="PROGRAM")
    run.add_argument("--data", required=True, metavar="FOLDER")
    run.add_argument("-o", "--output", required=True, metavar="RUNS")
    run.add_argument("--jobs", type=int, default=1, metavar="N", help="trainings at once, which share the GPU")
    run.add_argument("--seconds", type=positive, metavar="S", help="stop after so long; call again to go on")
    run.add_argument("--only", type=lambda text: text.split(","), metavar="WORD,...", help="roles, configs or ids")
    run.add_argument("--commit", metavar="HASH", help="of the sources; by default that of the program")
    chosen = commands.add_parser("choose", help="choose settings")
    collected = commands.add_parser("collect", help="write runs.csv, curves.csv and what else was measured")
    for command in (chosen, collected):
        command.add_argument("runs", metavar="RUNS")
    collected.add_argument("-o", "--output", metavar="FOLDER", help="by default the folder of the study")
    options = parser.parse_args()
    try:
        plan = study_plan.read_plan(options.study)
        if options.command == "run":
            if options.jobs < 1:
                raise StudyError(f"--jobs is {options.jobs}: expected at least 1")
            return Study(plan, options).run()
        if options.command == "choose":
            return choose(plan, options.runs)
        output = pathlib.Path(options.output or options.study)
        elsewhere = output.resolve() != pathlib.Path(options.study).resolve()
        return study_records.collect(plan, options.runs, output, replaces=elsewhere)
    except StudyError as error:
        print(f"training_study.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
