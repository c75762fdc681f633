"""study_search_test.py SOURCE: tests scripts/study_search.py, and the searches of docs/results/imdb_clean against its records."""
import csv
import math
import pathlib
import sys
import tempfile
import tomllib
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "scripts"))
sys.dont_write_bytecode = True
import study_plan  # noqa: E402
import study_search  # noqa: E402

STUDY = SOURCE / "docs" / "results" / "imdb_clean"


def search_with(**changes):
    values = dict(config="md", lr=0.1, priority=1, seed=100, trials=10, factor=3, deviations=(0.02, 1.0), decays=(0.1, 0.4),
                  shrink=True, steps=1000, tied=(), also=(), set=("data.validation=0.2",))
    return study_search.Search(**values | changes)


def walk(search, accuracy_of):
    """Runs a search to its end; returns what was tried, in order."""
    known = {}

    def finished(run):
        return known[run.id]

    while True:
        run, tried = study_search.progress(search, finished)
        if run is None:
            return tried
        assert run.id not in known, f"{run.id} is asked for twice"
        known[run.id] = accuracy_of(run)


def settings_of(run):
    return dict(setting.split("=", 1) for setting in run.set) | {"lr": run.lr}


def hill(best):
    """Accuracies that are highest at a learning rate, and a little higher without weight decay and small embeddings."""

    def accuracy_of(run):
        settings = settings_of(run)
        lost = 0.01 * abs(math.log(run.lr / best)) + 0.001 * (float(settings["optimizer.weight_decay"]) > 0)
        return 0.9 - lost - 0.1 * (settings["model.embedding_deviation"] == "1.0")

    return accuracy_of


class SearchTest(unittest.TestCase):
    def rates(self, tried):
        return [run.lr for run, _, _ in tried]

    def test_goes_up_as_long_as_that_is_better(self):
        tried = walk(search_with(), hill(0.9))
        self.assertEqual(self.rates(tried)[:4], [0.1, 0.3, 0.9, 2.7])
        settings, accuracy = study_search.winner(search_with(), tried)
        self.assertEqual(settings, {"optimizer.lr": 0.9, "model.embedding_deviation": 0.02, "optimizer.weight_decay": 0.0})
        self.assertAlmostEqual(accuracy, 0.9)

    def test_goes_down_otherwise_and_at_most_so_far(self):
        tried = walk(search_with(), hill(1e-6))
        self.assertEqual(self.rates(tried)[:5], [0.1, 0.3, 0.0333, 0.0111, 0.0037])
        self.assertEqual(tried[5][0].id, "md-s100-lr0.0037-e1.0")

    def test_goes_down_from_chance(self):
        tried = walk(search_with(), lambda run: 0.5 if run.lr > 0.02 else 0.8)
        self.assertEqual(self.rates(tried)[:4], [0.1, 0.3, 0.0333, 0.0111])
        self.assertEqual(study_search.winner(search_with(), tried)[1], 0.8)

    def test_the_other_deviation_has_learning_rates_of_its_own(self):
        def accuracy_of(run):
            large = settings_of(run)["model.embedding_deviation"] == "1.0"
            return (0.9 if large else 0.8) - 0.01 * abs(math.log(run.lr / (0.3 if large else 0.1)))
        tried = walk(search_with(), accuracy_of)
        settings, _ = study_search.winner(search_with(), tried)
        self.assertEqual((settings["optimizer.lr"], settings["model.embedding_deviation"]), (0.3, 1.0))

    def test_decay_is_what_it_takes_from_weights(self):
        runs = [run for run, _, _ in walk(search_with(), hill(0.1)) if "wd" in run.id]
        # 2 x 0.1 / (0.1 x 1000), and four times that.
        self.assertEqual([float(settings_of(run)["optimizer.weight_decay"]) for run in runs], [0.002, 0.008])
        given = [run for run, _, _ in walk(search_with(shrink=False, decays=(1e-4,)), hill(0.1)) if "wd" in run.id]
        self.assertEqual([float(settings_of(run)["optimizer.weight_decay"]) for run in given], [1e-4])

    def test_what_is_tied_follows_the_learning_rate(self):
        search = search_with(tied=(("optimizer.attention_lr", 0.02),))
        for run, _, _ in walk(search, hill(0.9)):
            self.assertAlmostEqual(float(settings_of(run)["optimizer.attention_lr"]), 0.02 * run.lr, delta=1e-3 * run.lr)

    def test_what_else_there_is_is_tried_at_the_best(self):
        search = search_with(also=(("optimizer.momentum=0.95",),))
        def accuracy_of(run):
            return hill(0.1)(run) + 0.01 * (settings_of(run).get("optimizer.momentum") == "0.95")
        settings, _ = study_search.winner(search, walk(search, accuracy_of))
        self.assertEqual(settings["optimizer.momentum"], "0.95")

    def test_the_budget_is_kept(self):
        for best in (1e-9, 1e-3, 0.1, 10, 1e9):
            for trials in (1, 4, 10):
                self.assertLessEqual(len(walk(search_with(trials=trials), hill(best))), trials)

    def test_a_training_that_diverges_loses(self):
        tried = walk(search_with(), lambda run: None if run.lr > 0.1 else 0.8)
        self.assertEqual(study_search.winner(search_with(), tried)[0]["optimizer.lr"], 0.1)
        with self.assertRaisesRegex(study_plan.StudyError, "all tuning runs of md diverged"):
            study_search.winner(search_with(), walk(search_with(), lambda run: None))


class PlanTest(unittest.TestCase):
    """What a plan may not say is told in a sentence."""

    def refused(self, text, message):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "configs").mkdir()
            (folder / "configs" / "md.toml").write_text("")
            (folder / "plan.toml").write_text(text)
            with self.assertRaisesRegex(study_plan.StudyError, message):
                study_plan.read_plan(folder)

    def test_mistakes(self):
        common = '[search]\ntrials = 10\nfactor = 3\nembedding_deviations = [0.02]\nshrinkages = [0.1]\nsteps = 1200\nseed = 1\n'
        entry = '[[searches]]\nconfig = "md"\nlr = 1\n'
        with self.assertRaisesRegex(study_plan.StudyError, "there is no .*plan.toml: --study expects a folder"):
            study_plan.read_plan("no-such-study")
        self.refused(entry, "search: trials is missing: expected a whole number")
        self.refused(common.replace("trials", "trails") + entry, "search: unknown key trails")
        self.refused(common.replace("factor = 3", 'factor = "3"') + entry, "search: factor is '3': expected a number")
        self.refused(common.replace("[0.1]", '["a"]') + entry, "shrinkages has 'a': expected numbers")
        self.refused(common + entry.replace("lr = 1", 'lr = "x"'), "searches entry 1: lr is 'x': expected a number")
        self.refused(common + entry + 'also = "text"\n', "also is 'text': expected a list of lists")
        self.refused(common + entry + 'also = [["optimizer.betas"]]\n', "also has 'optimizer.betas': expected a list of KEY=VALUE")
        self.refused(common + entry + '[extra]\n', "unknown key extra")
        self.refused(common + entry.replace('"md"', '"gd"'), "there is no configs/gd.toml")

    def test_what_is_no_record_is_refused(self):
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name, "adamw-s1.json")
            path.write_text("{}")
            with self.assertRaisesRegex(study_plan.StudyError, "adamw-s1.json is not the record of a training: it has no id"):
                study_plan.read_training(path)


class RecordsTest(unittest.TestCase):
    """The records of docs/results/imdb_clean are those that its plan asks for."""

    def setUp(self):
        self.plan = study_plan.read_plan(STUDY)
        with open(STUDY / "runs.csv", encoding="utf-8") as file:
            self.rows = {row["run"]: row for row in csv.DictReader(file)}
        self.last = {}
        with open(STUDY / "curves.csv", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                self.last[row["run"]] = row["validation_accuracy"]

    def accuracy_of(self, run):
        row = self.rows[run.id]
        return None if row["status"] == "diverged" else float(self.last[run.id])

    def test_searches_went_as_they_should_and_configs_have_their_winners(self):
        self.assertEqual(len(self.plan.searches), 28)
        walked = set()
        for search in self.plan.searches:
            left, tried = study_search.progress(search, self.accuracy_of)
            self.assertIsNone(left, f"{search.config}: {left} is missing")
            walked |= {run.id for run, _, _ in tried}
            settings, _ = study_search.winner(search, tried)
            config = tomllib.loads(self.plan.config_path(search.config).read_text(encoding="utf-8"))
            for key, value in settings.items():
                table, name = key.split(".")
                if isinstance(value, str):  # as --set has it
                    value = tomllib.loads(f"value = {value}")["value"]
                self.assertEqual(config[table][name], value, f"{search.config}: {key}")
        others = [row for row in self.rows.values() if row["role"] == "tuning" and row["run"] not in walked]
        self.assertTrue(all(row["note"] for row in others), "tuning runs that no search asks for have a note")

    def test_trainings_have_the_settings_of_their_configs(self):
        for run in self.plan.runs:
            if row := self.rows.get(run.id):
                config = tomllib.loads(self.plan.config_path(run.config).read_text(encoding="utf-8"))
                self.assertEqual(float(row["lr"]), config["optimizer"]["lr"], run.id)
                deviation = config["model"]["embedding_deviation"]
                self.assertIn(f"model.embedding_deviation={deviation}", row["settings"].split(" "), run.id)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
