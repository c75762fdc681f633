"""image_study_test.py SOURCE [TRAINER]: tests scripts/training_study.py on images, and the study of docs/results/cifar.

With TRAINER, the attmirror-deep of this build, it tests the whole way with tiny vision transformers on the CPU. Without, it
tests what needs no training.
"""
import lzma
import pathlib
import random
import sys
import tempfile
import tomllib
import unittest

from training_study_test import SOURCE, TRAINER, Folder, rows_of, study_plan, study_records
import training_study

CONFIG = """[data]
kind = "images"
padding = 4
mirror = 0.5

[model]
kind = "vit"
image = 32
patch = 16
width = 8
blocks = 2
heads = 2
head_width = 4
hidden = 8

[optimizer]
name = "{name}"
lr = {lr}

[train]
epochs = 4
batch = 10
loss = "mean"
stop_train_accuracy = 2
attention_every = 3
"""

PLAN = """data = "images"

[tuning]
set = ["data.validation=0.2", "data.test_limit=10", "train.epochs=1", "train.attention_every=0"]

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
role = "main"
priority = 1
seeds = [1]
config = "gd"
"""


class ImageFolder(Folder):
    """A study of images in a folder of its own."""

    def setUp(self):
        super().setUp()
        self.write("plan.toml", PLAN)
        self.write("configs/gd.toml", CONFIG.format(name="gd", lr=0.01))
        self.write("configs/adam.toml", CONFIG.format(name="adam", lr=0.5))


class Plans(ImageFolder):
    def test_what_is_missing_is_said(self):
        images = ("run", "--trainer", sys.executable, "--data", self.top, "-o", "x")
        self.assertIn("has no file for train: expected data_batch_1.bin or data_batch_1.bin.xz", self.call(*images, code=2))
        for number in range(1, 6):
            (self.top / f"data_batch_{number}.bin.xz").touch()
        self.assertIn("has no file for test: expected test_batch.bin or", self.call(*images, code=2))


class Unpacking(unittest.TestCase):
    """Packed images are unpacked once, not by every training."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data, self.place = (pathlib.Path(folder.name, name) for name in ("data", "place"))
        self.data.mkdir()
        self.place.mkdir()

    def test_files_that_are_not_packed_stay_where_they_are(self):
        for name in ("test_batch.bin", "test_batch.bin.xz"):  # the packed one is not needed
            (self.data / name).write_bytes(b"one")
        self.assertEqual(training_study.unpacked_images(self.data, self.place), self.data)
        self.assertEqual(list(self.place.iterdir()), [])

    def test_all_files_come_together(self):
        (self.data / "data_batch_1.bin").write_bytes(b"one")
        (self.data / "test_batch.bin.xz").write_bytes(lzma.compress(b"two"))
        (self.data / "batches.meta.txt").write_bytes(b"cat")
        self.assertEqual(training_study.unpacked_images(self.data, self.place), self.place)
        self.assertEqual({path.name: path.read_bytes() for path in self.place.iterdir()},
                         {"data_batch_1.bin": b"one", "test_batch.bin": b"two"})

    def test_broken_files_are_named(self):
        whole = lzma.compress(b"two" * 1000)
        for content in (b"no xz", whole[:-20], b""):
            (self.data / "test_batch.bin.xz").write_bytes(content)
            with self.assertRaisesRegex(study_plan.StudyError, "cannot unpack .*test_batch.bin.xz"):
                training_study.unpacked_images(self.data, self.place)


class Records(unittest.TestCase):
    def test_epochs_whose_weights_are_not_finite_have_no_attention(self):
        spread = {"entropy": 1.5, "top_share": 0.25, "tokens_90": 4}
        block = {"all": spread, "first": spread, "K_norm": 1, "Q_norm": 2, "KQ_norm": 1.5}
        epochs = [{"epoch": 1}, {"epoch": 2, "attention": [block, block]}, {"epoch": 3, "attention": [block, block | {"K_norm": None}]}]
        rows = list(study_records.attention_rows({"id": "gd-s1", "epochs": epochs}))
        self.assertEqual([(row["epoch"], row["block"]) for row in rows], [(2, 1), (2, 2)])
        self.assertEqual((rows[0]["class_top_share"], rows[0]["query_norm"]), ("0.25", "2"))


class Repository(unittest.TestCase):
    """The study of docs/results/cifar."""

    folder = SOURCE / "docs/results/cifar"

    def test_the_plan_names_every_config_and_the_data(self):
        plan = study_plan.read_plan(self.folder)
        self.assertEqual(plan.data, "images")
        configs = {path.stem for path in (self.folder / "configs").glob("*.toml")}
        self.assertEqual({run.config for run in plan.runs if run.role == "main"}, configs)
        for config in ("md-1.1", "adam"):
            self.assertGreaterEqual(len([run for run in plan.runs if run.config == config and run.role == "main"]), 2)
            self.assertEqual(plan.tuning_of(config), [])  # P1 has their learning rates
        self.assertEqual(len(plan.tuning_of("md-2")), 4)

    def test_configs_differ_in_the_optimizer_and_its_schedule_alone(self):
        rest = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in (self.folder / "configs").glob("*.toml")}
        optimizers = {name: config.pop("optimizer") for name, config in rest.items()}
        self.assertGreaterEqual(rest["adam"]["train"]["epochs"], 150)
        for name, config in rest.items():
            # A cosine ends where the training does, so that it may be shorter.
            if optimizers[name].get("schedule") == "cosine":
                self.assertAlmostEqual(optimizers[name]["warmup"], config["train"]["epochs"] / 10)
                config["train"]["epochs"] = rest["adam"]["train"]["epochs"]
            self.assertEqual(config, rest["adam"])
        self.assertEqual(optimizers["md-1.1"], {"name": "md", "p": 1.1, "lr": 5e-2})
        self.assertEqual(optimizers["adam"], {"name": "adam", "lr": 1e-4})

    def test_columns_are_those_of_the_readme(self):
        readme = (self.folder / "README.md").read_text(encoding="utf-8")
        for column in study_records.ATTENTION_COLUMNS + study_records.HISTOGRAM_COLUMNS:
            self.assertIn(f"`{column}`", readme)

    def test_records_fit_the_plan(self):
        if not (self.folder / "runs.csv").exists():
            self.skipTest("nothing has been recorded yet")
        recorded = [row["run"] for row in rows_of(self.folder / "runs.csv")]
        self.assertEqual(len(recorded), len(set(recorded)))
        self.assertLessEqual(set(recorded), {run.id for run in study_plan.read_plan(self.folder).runs})


def write_images(path, count, seed):
    """Images in CIFAR-10's layout, whose brightness is their class."""
    values = random.Random(seed)
    with open(path, "wb") as file:
        for number in range(count):
            label = number % 10
            file.write(bytes([label]) + bytes(25 * label + values.randrange(25) for _ in range(3072)))


class Trainings(ImageFolder):
    def setUp(self):
        super().setUp()
        data = self.top / "data"
        data.mkdir()
        for number in range(1, 6):
            write_images(data / f"data_batch_{number}.bin", 20, number)
        write_images(data / "test_classorder.bin", 20, 6)
        packed = data / "data_batch_3.bin"
        packed.with_suffix(".bin.xz").write_bytes(lzma.compress(packed.read_bytes()))
        packed.unlink()
        self.words = ("run", "--trainer", TRAINER, "--data", data, "-o", self.top / "runs", "--commit", "abc")

    def test_a_study_of_images_from_tuning_to_records(self):
        self.assertIn("4 of 4 trainings have finished", self.call(*self.words))
        self.assertEqual(self.call(*self.words).splitlines(), ["4 of 4 trainings have finished"])
        self.call("collect", self.top / "runs", "-o", self.top / "out")
        runs = {row["run"]: row for row in rows_of(self.top / "out/runs.csv")}
        self.assertEqual(list(runs), ["adam-s1", "gd-s1", "adam-s100-lr1e-09", "adam-s100-lr0.01"])
        self.assertEqual((runs["gd-s1"]["status"], runs["gd-s1"]["data"], runs["gd-s1"]["score"]), ("completed", "cifar10", ""))
        self.assertNotEqual(runs["gd-s1"]["K_above"], "")
        self.assertEqual(runs["gd-s1"]["settings"], "optimizer.lr=0.01 optimizer.weight_decay=0.0")
        # Attention is measured after epochs 1, 3 and the last, in both blocks, and not in tuning.
        attention = rows_of(self.top / "out/attention.csv")
        self.assertEqual([(row["run"], row["epoch"], row["block"]) for row in attention],
                         [(run, epoch, block) for run in ("adam-s1", "gd-s1") for epoch in "134" for block in "12"])
        self.assertEqual(list(attention[0]), list(study_records.ATTENTION_COLUMNS))
        for row in attention:  # 4 patches and the class token
            for queries in ("", "class_"):
                self.assertTrue(0.2 <= float(row[f"{queries}top_share"]) <= 1)
                self.assertTrue(0 <= float(row[f"{queries}entropy"]) <= 1.6095)
                self.assertTrue(1 <= float(row[f"{queries}tokens_90"]) <= 5)
            self.assertGreater(float(row["product_norm"]), 0)
            self.assertLessEqual(float(row["product_norm"]), float(row["key_norm"]) * float(row["query_norm"]))
        # Every weight of K is in a bin: 2 blocks, width 8, 2 heads of 4.
        histogram = rows_of(self.top / "out/histograms.csv")
        for run in ("adam-s1", "gd-s1"):
            for name in "KQV":
                bins = [row for row in histogram if row["run"] == run and row["map"] == name]
                self.assertEqual(sum(int(row["count"]) for row in bins), 2 * 8 * 8)
                largest = max(abs(float(row["weight"])) for row in bins)
                self.assertAlmostEqual(largest, float(runs[run][f"{name}_largest"]), delta=0.0051)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], defaultTest=["Trainings"] if TRAINER else ["Plans", "Unpacking", "Records", "Repository"])
