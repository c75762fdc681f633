"""training_study_test.py SOURCE [TRAINER]: tests scripts/training_study.py, and the studies of docs/results/imdb and imdb_depth.

With TRAINER, the attmirror-deep of this build, it tests the whole way with tiny trainings on the CPU: tuning, learning rates, trainings,
a stop and a second call, scores, records. Without, it tests what needs no training.
"""
import csv
import pathlib
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
TRAINER = sys.argv[2] if len(sys.argv) > 2 else ""
sys.path.insert(0, str(SOURCE / "scripts"))
sys.dont_write_bytecode = True
import study_plan  # noqa: E402
import study_records  # noqa: E402

CONFIG = """[data]
kind = "text"
length = 16

[model]
kind = "encoder"
width = 8
blocks = 1
heads = 2
embedding_deviation = 0.1

[optimizer]
name = "{name}"
lr = {lr}

[train]
epochs = 3
batch = 20
loss = "sum"
stop_train_accuracy = 0.995
"""

PLAN = """[tuning]
set = ["data.validation=0.2", "data.test_limit=10", "train.epochs=2"]

[[runs]]
role = "main"
priority = 2
seeds = [1, 2]
config = "gd"

[[runs]]
role = "main"
priority = 2
seeds = [1]
config = "adam"

[[runs]]
role = "tuning"
priority = 1
seeds = [100]
config = "adam"
lr = [1e-9, 0.01]

[[runs]]
role = "repeat"
priority = 3
seeds = [1]
config = "gd"
"""


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Folder(unittest.TestCase):
    """A study in a folder of its own."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = pathlib.Path(temporary.name)
        self.study = self.top / "study"
        (self.study / "configs").mkdir(parents=True)
        self.write("plan.toml", PLAN)
        self.write("configs/gd.toml", CONFIG.format(name="gd", lr=0.001))
        self.write("configs/adam.toml", CONFIG.format(name="adam", lr=0.5))

    def write(self, name, text):
        (self.study / name).write_text(text, encoding="utf-8")

    def call(self, *words, code=0):
        done = subprocess.run([sys.executable, "-B", SOURCE / "scripts/training_study.py", "--study", self.study, *words],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def record(self, run, status="completed", accuracy=None, **others):
        """A record as if the training had run."""
        trial = {"best_validation_accuracy": accuracy}
        record = {"id": run.id, "config_id": run.config, "role": run.role, "seed": run.seed, "lr": run.lr or 0,
                  "commit": "0", "date": "2026-01-01", "status": status, "message": "", "device": "CPU", "config": None,
                  "results": {"trials": [trial]}, "epochs": [], "score": {}, "weights": {}} | others
        (self.top / "runs").mkdir(exist_ok=True)
        study_plan.write_atomically(self.top / "runs" / f"{run.id}.json", study_plan.json.dumps(record))


class Plans(Folder):
    def test_order_is_by_priority_then_seed_then_the_file(self):
        ids = [run.id for run in study_plan.read_plan(self.study).runs]
        self.assertEqual(ids, ["adam-s100-lr1e-09", "adam-s100-lr0.01", "gd-s1", "adam-s1", "gd-s2", "gd-s1-repeat"])

    def test_bad_plans_are_refused_in_a_sentence(self):
        for old, new, message in (
                ('role = "repeat"', 'role = "again"', "runs entry 4: role is 'again': expected one of main, tuning, repeat"),
                ('config = "adam"\nlr', 'config = "adan"\nlr', "runs entry 3: config is 'adan': there is no configs/adan.toml"),
                ("lr = [1e-9, 0.01]", "", "runs entry 3: lr is missing: expected it for tuning runs and no others"),
                ("lr = [", "rate = [", "runs entry 3: unknown key rate"),
                ("seeds = [1, 2]", "seeds = [1, 1]", "gd-s1 is planned twice"),
                ("[tuning]", 'data = "sounds"\n[tuning]', "data is 'sounds': expected one of texts, images"),
                ("[[runs]]", "[[runs", "cannot read")):
            self.write("plan.toml", PLAN.replace(old, new))
            self.assertIn(message, self.call("choose", "nowhere", code=2))

    def test_the_best_validation_accuracy_wins_and_the_smaller_rate_among_equals(self):
        plan = study_plan.read_plan(self.study)
        small, large = plan.tuning_of("adam")
        self.assertIn("there is no folder", self.call("choose", self.top / "runs", code=2))
        (self.top / "runs").mkdir()
        self.assertIn("not all tuning runs have finished", self.call("choose", self.top / "runs"))
        self.record(small, accuracy=0.7)
        self.record(large, accuracy=0.7)
        self.assertIn("learning rate 1e-09 (at the end of the grid)", self.call("choose", self.top / "runs"))
        self.record(large, accuracy=0.71)
        self.call("choose", self.top / "runs")
        self.assertEqual(tomllib.loads(plan.config_path("adam").read_text())["optimizer"]["lr"], 0.01)
        self.record(large, status="diverged", accuracy=0.9)
        self.assertIn("0.01: diverged", self.call("choose", self.top / "runs"))
        self.record(small, status="diverged", accuracy=0.9)
        self.assertIn("all tuning runs of adam diverged", self.call("choose", self.top / "runs", code=2))

    def test_what_is_missing_is_said(self):
        self.assertIn("there is no program nothing", self.call("run", "--trainer", "nothing", "--data", ".", "-o", "x", code=2))
        self.assertIn("has no file for train: expected imdb-train.safetensors or",
                      self.call("run", "--trainer", sys.executable, "--data", self.top, "-o", "x", code=2))
        self.assertIn("has no record of a training", self.call("collect", self.top, code=2))

    def test_records_are_added_to_those_that_are_there(self):
        weights = {"norm": 1.0, "largest": 0.5, "above_0.06": 0.25, "sparsity": 0.25}
        epoch = {"epoch": 1, "train_loss": 0.5, "train_accuracy": 0.75, "test_loss": 0.5, "test_accuracy": 0.75, "seconds": 1.0,
                 "K": weights, "Q": weights, "V": weights}
        config = {"optimizer": {"name": "gd", "lr": 0.1}, "data": {"kind": "text"}, "model": {},
                  "train": {"stop_train_accuracy": 0.995}}
        runs = study_plan.read_plan(self.study).runs
        for run in runs:
            self.record(run, epochs=[epoch], config=config)
        self.call("collect", self.top / "runs")
        whole = {name: (self.study / name).read_bytes() for name in ("runs.csv", "curves.csv")}
        # The same records in two parts, the second of which comes first in the files, give the same files.
        for name in whole:
            (self.study / name).unlink()
        for part in (runs[3:], runs[:3]):
            for file in (self.top / "runs").glob("*.json"):
                file.unlink()
            for run in part:
                self.record(run, epochs=[epoch], config=config)
            said = self.call("collect", self.top / "runs")
        self.assertIn("6 trainings are in", said)
        self.assertIn(", 3 of them from", said)
        self.assertEqual({name: (self.study / name).read_bytes() for name in whole}, whole)
        # A training that was made again has one row, the new one.
        self.record(runs[2], status="diverged", epochs=[epoch, epoch | {"epoch": 2}], config=config)
        self.call("collect", self.top / "runs")
        rows = rows_of(self.study / "runs.csv")
        self.assertEqual([row["status"] for row in rows if row["run"] == "gd-s1"], ["diverged"])
        self.assertEqual(len(rows), 6)
        self.assertEqual(len(rows_of(self.study / "curves.csv")), 7)
        # Elsewhere they stand alone.
        self.call("collect", self.top / "runs", "-o", self.top / "out")
        self.assertEqual(len(rows_of(self.top / "out/runs.csv")), 3)

    def test_files_that_were_cut_are_not_added_to(self):
        runs = study_plan.read_plan(self.study).runs
        self.record(runs[2])
        self.call("collect", self.top / "runs")
        (self.study / "runs.csv").write_text((self.study / "runs.csv").read_text()[:-20])
        before = (self.study / "runs.csv").read_bytes()
        (self.top / "runs" / f"{runs[2].id}.json").unlink()
        self.record(runs[3])
        self.assertIn("runs.csv line 2: expected", self.call("collect", self.top / "runs", code=2))
        self.assertEqual((self.study / "runs.csv").read_bytes(), before)
        (self.study / "runs.csv").write_text("")
        self.assertIn("runs.csv has no column run", self.call("collect", self.top / "runs", code=2))

    def test_what_is_recorded_is_not_lost(self):
        runs = study_plan.read_plan(self.study).runs
        for run in runs[2:4]:
            self.record(run, status="completed")
        self.call("collect", self.top / "runs")
        before = (self.study / "runs.csv").read_bytes()
        # By one that was stopped.
        (self.top / "runs" / f"{runs[3].id}.json").unlink()
        self.record(runs[2], status="unfinished")
        self.assertIn("runs.csv has gd-s1, completed after 0 epochs, and the new record is unfinished after 0",
                      self.call("collect", self.top / "runs", code=2))
        self.assertEqual((self.study / "runs.csv").read_bytes(), before)
        # By naming the study's folder.
        self.record(runs[2], status="diverged")
        self.assertIn("2 trainings are in", said := self.call("collect", self.top / "runs", "-o", self.study))
        self.assertIn("in the place of earlier ones gd-s1", said)
        # By a column of a later version, and where a cell is damaged.
        whole = (self.study / "runs.csv").read_text()
        for old, new, message in (("run,config", "run,configuration", "has no column config"),
                                  (",note\n", ",remark\n", "has a column 'remark', which this version does not know"),
                                  (",main,1,", ",mean,1,", "role of adam-s1 is 'mean': expected one of main, tuning"),
                                  (",main,1,", ",main,one,", "seed of adam-s1 is 'one': expected a number")):
            (self.study / "runs.csv").write_text(whole.replace(old, new, 1))
            self.assertIn(message, self.call("collect", self.top / "runs", code=2))

    def test_a_folder_has_no_files_of_an_earlier_collection(self):
        out = self.top / "out"
        out.mkdir()
        (out / "sentences.csv").write_text(",".join(study_records.SENTENCE_COLUMNS) + "\ngd-s9,1,great,1,1\n")
        (out / "attention.csv").write_text("mine\n")
        self.record(study_plan.read_plan(self.study).runs[2])
        self.call("collect", self.top / "runs", "-o", out)
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["attention.csv", "curves.csv", "runs.csv"])

    def test_failures_are_rows_too(self):
        run = study_plan.read_plan(self.study).runs[2]
        self.record(run, status="failed", message="a \"quoted\" message, with a comma", results=None)
        self.call("collect", self.top / "runs")
        row, = rows_of(self.study / "runs.csv")
        self.assertEqual((row["run"], row["status"], row["note"], row["epochs"], row["best_test"]),
                         ("gd-s1", "failed", "a \"quoted\" message, with a comma", "0", ""))

    def test_sentences_of_main_trainings_have_rows(self):
        def sentence(pivotal, published, words):
            return {"sentence": f"It was {pivotal}", "pivotal": pivotal, "published": published, "sum": words,
                    "pieces": ["[CLS]", "it", "was", pivotal, "[SEP]"], "tokens_attended": len(pivotal) / 2.5}
        sentences = [sentence("fantastic", 0.123456, 1.0), sentence("breathtaking", None, 0.25), sentence("happy", None, None)]
        score = {"models": [{"published_way": {"mean": 0.123456, "kept": 1}, "words_sum": {"mean": 0.625}, "sentences": sentences}]}
        plan = study_plan.read_plan(self.study)
        self.record(plan.runs[2])
        self.call("collect", self.top / "runs")
        self.assertFalse((self.study / "sentences.csv").exists())
        reviews = {"reviews": {"models": [{what: {"mean": 0.5} for what in ("score", "lift", "top")}]}}
        for run in plan.runs:
            self.record(run, score=score, reviews=reviews)
        self.call("collect", self.top / "runs")
        # (9 + 12 + 5) / 3 letters, a fifth of which over 2.5 are the share.
        self.assertEqual({row["attended_share"] for row in rows_of(self.study / "runs.csv")}, {"0.6933"})
        rows = rows_of(self.study / "sentences.csv")
        self.assertEqual([row["run"] for row in rows[::3]], ["adam-s1", "gd-s1", "gd-s2"])  # no tuning, no repetition
        self.assertEqual([tuple(row.values()) for row in rows[3:6]],
                         [("gd-s1", "1", "fantastic", "0.1235", "1"), ("gd-s1", "2", "breathtaking", "", "0.25"),
                          ("gd-s1", "3", "happy", "", "")])

    def test_curves_have_the_weights_of_each_epoch(self):
        weights = {"norm": 1.0, "largest": 0.123456, "above_0.06": 19106 / 442368, "sparsity": 0.25}
        epoch = {"epoch": 1, "train_loss": 0.5, "train_accuracy": 0.75, "test_loss": 0.5, "test_accuracy": 0.75, "seconds": 1.0,
                 "K": weights, "Q": weights | {"largest": None}, "V": weights}
        config = {"optimizer": {"name": "gd", "lr": 0.1}, "data": {"kind": "text"}, "model": {},
                  "train": {"stop_train_accuracy": 0.995}}
        self.record(study_plan.read_plan(self.study).runs[2], epochs=[epoch], config=config)
        self.call("collect", self.top / "runs")
        row, = rows_of(self.study / "curves.csv")
        self.assertEqual((row["K_largest"], row["Q_largest"], row["V_sparsity"]), ("0.1235", "", "0.25"))
        self.assertEqual(round(float(row["K_share"]) * 442368), 19106)  # the count comes back

    def test_records_of_a_config_that_is_not_there_are_refused(self):
        self.record(study_plan.read_plan(self.study).runs[2], config_id="lion")
        self.assertIn("there is no", self.call("collect", self.top / "runs", code=2))


class Repository(unittest.TestCase):
    """The study of docs/results/imdb."""

    folder = SOURCE / "docs/results/imdb"

    def test_the_plan_names_every_config(self):
        plan = study_plan.read_plan(self.folder)
        configs = {path.stem for path in (self.folder / "configs").glob("*.toml")}
        self.assertEqual({run.config for run in plan.runs if run.role == "main"}, configs)

    def test_equal_budgets_for_learning_rates(self):
        plan = study_plan.read_plan(self.folder)
        tuned = {run.config: [(one.seed, one.set) for one in plan.tuning_of(run.config)] for run in plan.runs if run.role == "tuning"}
        self.assertEqual(len(tuned), 4)
        for runs in tuned.values():
            self.assertGreaterEqual(len(runs), 4)  # more, where the best of four was the last on its side
            self.assertEqual(set(runs), set(tuned["adam"]))

    def test_configs_differ_in_the_optimizer_alone(self):
        rest = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in (self.folder / "configs").glob("*.toml")}
        for config in rest.values():
            del config["optimizer"]
        for config in rest.values():
            self.assertEqual(config, rest["adam"])

    def test_columns_are_those_of_the_readme_and_of_the_fixtures(self):
        readme = (self.folder / "README.md").read_text(encoding="utf-8")
        for column in study_records.REVIEW_COLUMNS:
            self.assertIn(f"`{column}`", readme)
        for column in study_records.SENTENCE_COLUMNS:
            self.assertIn(f"`{column}`", readme)
        for columns, file in ((study_records.RUN_COLUMNS, "runs.csv"), (study_records.CURVE_COLUMNS, "curves.csv")):
            for column in columns:
                name = column if column[:2] not in ("K_", "Q_", "V_") else f"K{column[1:]}"
                self.assertIn(f"`{name}`", readme)
            head = (SOURCE / "tests/fixtures/records" / file).read_text(encoding="utf-8").splitlines()[0]
            self.assertEqual(head, ",".join(columns))

    def test_records_fit_the_plan(self):
        if not (self.folder / "runs.csv").exists():
            self.skipTest("nothing has been recorded yet")
        recorded = [row["run"] for row in rows_of(self.folder / "runs.csv")]
        self.assertEqual(len(recorded), len(set(recorded)))
        self.assertEqual(set(recorded), {run.id for run in study_plan.read_plan(self.folder).runs})


class Depth(unittest.TestCase):
    """The study of docs/results/imdb_depth: P1's settings at 4 and 6 blocks."""

    folder = SOURCE / "docs/results/imdb_depth"
    RATES = {"md-1.1": (6e-4, 1e-3), "md-2": (4e-4, 1e-3), "md-3": (6e-6, 1e-5), "adam": (None, 3e-4),
             "adam-1e-4": (1e-4, 1e-4)}

    def test_the_plan_has_the_most_wanted_first(self):
        runs = study_plan.read_plan(self.folder).runs
        self.assertEqual({run.config for run in runs}, {path.stem for path in (self.folder / "configs").glob("*.toml")})
        self.assertEqual({run.config for run in runs[:6]}, {"md-1.1-6blocks", "md-2-6blocks"})
        for config in {run.config for run in runs}:
            seeds = {run.seed for run in runs if run.config == config and run.role == "main"}
            self.assertEqual(len(seeds), 3 if config in ("md-1.1-6blocks", "md-2-6blocks", "md-1.1-4blocks") else 2)
        self.assertEqual({run.role for run in runs}, {"main", "repeat"})

    def test_every_training_of_the_plan_is_recorded(self):
        self.assertEqual({row["run"] for row in rows_of(self.folder / "runs.csv")},
                         {run.id for run in study_plan.read_plan(self.folder).runs})

    def test_configs_are_those_of_three_blocks_but_for_size_rate_and_limit(self):
        for path in (self.folder / "configs").glob("*.toml"):
            row, size = path.stem.rsplit("-", 1)
            config = tomllib.loads(path.read_text(encoding="utf-8"))
            shallow = tomllib.loads((SOURCE / f"docs/results/imdb/configs/{row.removesuffix('-1e-4')}.toml").read_text(encoding="utf-8"))
            blocks = int(size.removesuffix("blocks"))
            self.assertEqual(config["optimizer"].pop("lr"), self.RATES[row][(4, 6).index(blocks)])
            del shallow["optimizer"]["lr"]
            shallow["model"] |= {"blocks": blocks, "heads": blocks}
            shallow["train"]["epochs"] = 200
            self.assertEqual(config, shallow)


class Trainings(Folder):
    def setUp(self):
        super().setUp()
        data = self.top / "data"
        data.mkdir()
        subprocess.run([sys.executable, "-B", SOURCE / "tests/docs/toy_texts.py"], cwd=data, check=True)
        self.words = ("run", "--trainer", TRAINER, "--data", data, "-o", self.top / "runs", "--commit", "abc")

    def stop_after_an_epoch(self, *words):
        """Calls it, and sends it a signal as soon as its training has ended one more epoch."""
        metrics = self.top / "runs/gd-s1/metrics.jsonl"
        before = metrics.stat().st_size if metrics.exists() else 0
        command = [sys.executable, "-B", SOURCE / "scripts/training_study.py", "--study", self.study, *self.words, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > before):
                time.sleep(0.02)
            process.terminate()
            said = process.communicate()[0]
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("unfinished", said)

    def test_a_study_from_tuning_to_records(self):
        # The kind of run waits for a learning rate, a run by its name takes that of the config.
        self.assertIn("waiting for the tuning runs of their optimizers: adam-s1\n2 of 6",
                      self.call(*self.words, "--only", "main", code=1))
        named = self.call("run", *self.words[1:-3], self.top / "named", *self.words[-2:], "--only", "adam-s1")
        self.assertIn("adam-s1", named)
        self.assertIn("1 of 6", named)
        said = self.call(*self.words, "--jobs", "2")
        self.assertIn("6 of 6 trainings have finished", said)
        self.assertNotIn("waiting", said)
        self.assertIn("adam: learning rate 0.01", said)
        self.assertEqual(self.call(*self.words).splitlines(), ["6 of 6 trainings have finished"])  # nothing is left to do
        self.call("collect", self.top / "runs", "-o", self.top / "out")
        runs = {row["run"]: row for row in rows_of(self.top / "out/runs.csv")}
        self.assertEqual(list(runs), ["adam-s1", "gd-s1", "gd-s2", "adam-s100-lr1e-09", "adam-s100-lr0.01", "gd-s1-repeat"])
        self.assertEqual(runs["adam-s1"]["lr"], "0.01")
        self.assertEqual(runs["adam-s100-lr0.01"]["epochs"], "2")
        self.assertGreater(float(runs["adam-s100-lr0.01"]["best_validation"]), 0.3)
        self.assertEqual(runs["adam-s100-lr0.01"]["best_test"], "")
        self.assertEqual((runs["gd-s1"]["status"], runs["gd-s1"]["epochs"], runs["gd-s1"]["p"]), ("completed", "3", "2"))
        self.assertEqual((runs["gd-s1"]["device"], runs["gd-s1"]["commit"], runs["gd-s1"]["score_sentences"]), ("CPU", "abc", "10"))
        # On a CPU the same seed gives the same numbers, and another seed others.
        measured = ("best_test", "train_loss", "score", "K_sparsity")
        again, other = runs["gd-s1-repeat"], runs["gd-s2"]
        self.assertEqual([runs["gd-s1"][key] for key in measured], [again[key] for key in measured])
        self.assertNotEqual([runs["gd-s1"][key] for key in measured], [other[key] for key in measured])
        curve = [row for row in rows_of(self.top / "out/curves.csv") if row["run"] == "gd-s1"]
        self.assertEqual([row["epoch"] for row in curve], ["1", "2", "3"])
        self.assertEqual(set(runs["gd-s1"]), set(study_records.RUN_COLUMNS + study_records.REVIEW_COLUMNS))
        self.assertGreater(float(runs["gd-s1"]["attended_share"]), 0)
        self.assertEqual(runs["gd-s1"]["review_score"], "")  # texts that are no token files have no score on reviews
        accuracies = [float(row["test_accuracy"]) for row in curve]
        self.assertEqual(max(accuracies), float(runs["gd-s1"]["best_test"]))
        self.assertEqual(accuracies[-1], float(runs["gd-s1"]["last_test"]))
        self.assertAlmostEqual(sum(accuracies) / 3, float(runs["gd-s1"]["last_ten_test"]), places=5)

    def test_scores_on_reviews_are_recorded_where_there_are_token_files(self):
        data = self.top / "data"
        sys.path.insert(0, str(SOURCE / "tests/docs"))
        import toy_texts
        draw = toy_texts.random.Random(2)
        for name, count in (("train", 2400), ("test", 60)):  # so many that each sentiment word occurs in 300 of them
            toy_texts.write_lines(data / "texts.tsv", [f"{label}\t{text}" for label, _, text in (toy_texts.review(draw) for _ in range(count))])
            subprocess.run([TRAINER, "tokenize", data / "texts.tsv", "--vocabulary", data / "vocab.txt", "-o", data / f"imdb-{name}.safetensors",
                            "--quiet"], check=True)
        self.call(*self.words, "--only", "gd-s1")
        record = study_plan.read_record(self.top / "runs/gd-s1.json")["reviews"]["reviews"]
        self.assertEqual({word["word"] for word in record["words"]}, set(toy_texts.GOOD + toy_texts.BAD))
        self.assertEqual((len(record["rows"]), len(record["models"][0]["scores"])), (60, 60))
        self.call("collect", self.top / "runs", "-o", self.top / "out")
        row, = rows_of(self.top / "out/runs.csv")
        self.assertEqual(tuple(row)[tuple(row).index("word_score") + 1:][:4], study_records.REVIEW_COLUMNS)
        for what in ("score", "lift", "top"):
            self.assertAlmostEqual(float(row[f"review_{what}"]), record["models"][0][what]["mean"], places=5)

    def test_a_stopped_training_goes_on_and_a_failed_one_is_recorded(self):
        config = CONFIG.format(name="gd", lr=1e-12)
        self.write("configs/gd.toml", config.replace("epochs = 3", "epochs = 1000000"))
        epochs = []
        for _ in range(2):
            self.stop_after_an_epoch("--only", "gd-s1")
            record = study_plan.read_record(self.top / "runs/gd-s1.json")
            self.assertEqual(record["status"], "unfinished")
            epochs.append([epoch["epoch"] for epoch in record["epochs"]])
        self.assertEqual(epochs[1][:len(epochs[0])], epochs[0])
        self.assertGreater(len(epochs[1]), len(epochs[0]))
        self.assertIn("unfinished", self.call(*self.words, "--only", "gd-s1", "--seconds", "0.001"))
        self.write("configs/gd.toml", config.replace("heads = 2", "heads = 3"))
        self.assertIn("failed", self.call(*self.words, "--only", "gd-s2", code=1))
        record = study_plan.read_record(self.top / "runs/gd-s2.json")
        self.assertEqual(record["status"], "failed")
        self.assertIn("heads", record["message"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], defaultTest=["Trainings"] if TRAINER else ["Plans", "Repository", "Depth"])
