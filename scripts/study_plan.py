"""The plan of a study of trainings, for training_study.py: which trainings there are, and what is known of each.

A study is a folder with plan.toml and configs/NAME.toml, the files that `attmirror deep train` reads. The records of its
trainings are files RUNS/ID.json, one each, which hold everything that a table or a figure needs: a folder of these alone is
enough to go on elsewhere.
"""
import dataclasses
import json
import os
import pathlib
import re
import tomllib

# What a training is for; the ending of its id.
ROLES = {"main": "", "tuning": None, "repeat": "-repeat", "ablation": "", "longer": "-longer", "transfer": "-transfer"}
DATA = ("texts", "images")  # what a study trains on; texts where plan.toml does not say
FINISHED = ("completed", "reached accuracy", "diverged")


class StudyError(Exception):
    """What is wrong with a plan or a record, in a sentence."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One training of a plan."""
    config: str
    role: str
    seed: int
    priority: int
    lr: float | None  # that of a tuning run; None: the config's
    set: tuple        # KEY=VALUE, as for `attmirror deep train --set`
    label: str = ""   # what a tuning run tries, where it is more than a learning rate
    data: str = ""    # "sst2": other data than the study's

    @property
    def id(self):
        """md-1.1-s1, md-1.1-s1-repeat, adam-s100-lr0.0003: the name of the folder and of the record."""
        ending = f"-{self.label or f'lr{self.lr}'}" if self.role == "tuning" else ROLES[self.role]
        return f"{self.config}-s{self.seed}{ending}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """All trainings of a study, in the order in which they are to run."""
    folder: pathlib.Path
    runs: tuple
    searches: tuple = ()  # study_search.Search: trainings that follow from the records of others
    data: str = "texts"   # one of DATA

    def config_path(self, config):
        return self.folder / "configs" / f"{config}.toml"

    def tuning_of(self, config):
        """The runs that choose the learning rate of a config; none where the config has its own."""
        return [run for run in self.runs if run.role == "tuning" and run.config == config]


def read_plan(folder):
    folder = pathlib.Path(folder)
    path = folder / "plan.toml"
    if not path.is_file():
        raise StudyError(f"there is no {path}: --study expects a folder with plan.toml and configs/")
    try:
        plan = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StudyError(f"cannot read {path}: {error}") from None
    if unknown := set(plan) - {"data", "tuning", "runs", "search", "searches"}:
        raise StudyError(f"{path}: unknown key {min(unknown)}")
    if (data := plan.get("data", "texts")) not in DATA:
        raise StudyError(f"{path}: data is {data!r}: expected one of {', '.join(DATA)}")
    runs = []
    for number, entry in enumerate(plan.get("runs", []), 1):
        where = f"{path}: runs entry {number}"
        if unknown := set(entry) - {"config", "role", "seeds", "priority", "lr", "set", "data"}:
            raise StudyError(f"{where}: unknown key {min(unknown)}")
        for key, kind in (("config", str), ("role", str), ("seeds", list), ("priority", int)):
            if not isinstance(entry.get(key), kind):
                raise StudyError(f"{where}: {key} is {entry.get(key)!r}: expected a {kind.__name__}")
        if entry["role"] not in ROLES:
            raise StudyError(f"{where}: role is {entry['role']!r}: expected one of {', '.join(ROLES)}")
        tuning = entry["role"] == "tuning"
        if tuning != ("lr" in entry):
            raise StudyError(f"{where}: lr is {'missing' if tuning else 'given'}: expected it for tuning runs and no others")
        if not (folder / "configs" / f"{entry['config']}.toml").is_file():
            raise StudyError(f"{where}: config is {entry['config']!r}: there is no configs/{entry['config']}.toml")
        for seed in entry["seeds"]:
            for lr in entry.get("lr", [None]):
                settings = (plan.get("tuning", {}).get("set", []) if tuning else []) + entry.get("set", [])
                runs.append(Run(entry["config"], entry["role"], seed, entry["priority"], lr, tuple(settings),
                                data=entry.get("data", "")))
    # Stable: among equals, plan.toml decides.
    runs.sort(key=lambda run: (run.priority, run.seed))
    ids = [run.id for run in runs]
    if twice := [name for name in ids if ids.count(name) > 1]:
        raise StudyError(f"{path}: {twice[0]} is planned twice")
    import study_search  # it needs Run, and so comes second
    return Plan(folder, tuple(runs), study_search.read_searches(plan, folder, path), data)


def record_path(runs_folder, run):
    return pathlib.Path(runs_folder) / f"{run.id}.json"


def read_training(path):
    """The record of a training, which is there."""
    record = read_record(path)
    for key in ("id", "config_id", "role", "seed", "lr", "status", "epochs"):
        if not isinstance(record, dict) or key not in record:
            raise StudyError(f"{path} is not the record of a training: it has no {key}")
    return record


def read_record(path):
    """A record, or None where there is none yet."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StudyError(f"cannot read {path}: {error}") from None


def write_atomically(path, text):
    """All of a file or nothing of it."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def is_finished(record):
    """Whether nothing is left to do: a main training that ended is measured, too."""
    if record is None or record["status"] not in FINISHED:
        return False
    return not is_measured(record) or bool(record["weights"] and (record["score"] or not is_scored(record)))


def is_measured(record):
    """Whether attention and weights of a training are looked at: not of one that diverged, chose settings or read other
    texts."""
    return record["role"] not in ("tuning", "transfer") and record["status"] in ("completed", "reached accuracy")


def is_scored(record):
    """Whether a training has a token-selection score: images have no pivotal words."""
    return not record["config"] or record["config"]["data"]["kind"] != "images"


def choose_rate(plan, runs_folder, config):
    """((lr, best validation accuracy) of every tuning run, by lr; the lr that wins), or None before all have finished.

    A training that diverged cannot win, whatever it reached before. Among equals the smaller lr wins.
    """
    rates = []
    for run in plan.tuning_of(config):
        record = read_record(record_path(runs_folder, run))
        if not is_finished(record):
            return None
        trial = record["results"]["trials"][0]
        rates.append((run.lr, None if record["status"] == "diverged" else trial["best_validation_accuracy"]))
    rates.sort()
    usable = [(accuracy, -lr) for lr, accuracy in rates if accuracy is not None]
    if not usable:
        raise StudyError(f"all tuning runs of {config} diverged: give it smaller learning rates in plan.toml")
    return rates, -max(usable)[1]


def write_settings(plan, config, settings):
    """Writes settings, KEY -> value, into the config; returns whether any was another one."""
    path = plan.config_path(config)
    text = changed = path.read_text(encoding="utf-8")
    for key, value in settings.items():
        name = key.split(".")[-1]
        changed, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", changed)
        if count != 1:
            raise StudyError(f"{path}: {count} lines begin with \"{name} = \": expected one")
    if changed != text:
        write_atomically(path, changed)
    return changed != text


def last_validation(runs_folder, run):
    """The accuracy on held-out rows after the last epoch of a run; None: it diverged. KeyError: it has not finished."""
    record = read_record(record_path(runs_folder, run))
    if not is_finished(record):
        raise KeyError(run.id)
    return None if record["status"] == "diverged" else record["results"]["trials"][0]["validation_accuracy"]
