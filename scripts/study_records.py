"""The records of a study as files, for training_study.py: runs.csv and curves.csv; sentences.csv where networks were scored
on P1's sentences; speed.csv where settings were searched; attention.csv where attention was measured during training;
histograms.csv, of weights, for images. The READMEs of docs/results/imdb and docs/results/cifar say what the columns are,
and src/papers/records.cpp reads them.
"""
import csv
import io
import pathlib
import statistics

import study_plan

MAPS = ("K", "Q", "V")
RUN_COLUMNS = ("run", "config", "role", "seed", "lr", "p", "status", "epochs", "best_test", "best_epoch", "last_test",
               "last_ten_test", "epochs_to_stop", "best_validation", "train_loss", "train_accuracy", "score",
               "score_sentences", "word_score",
               *(f"{name}_{what}" for name in MAPS for what in ("above", "share", "largest", "sparsity")),
               "seconds", "device", "date", "commit", "note")
CURVE_COLUMNS = ("run", "epoch", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "validation_accuracy",
                 *(f"{name}_{what}" for name in MAPS for what in ("share", "largest", "sparsity")))
SENTENCE_COLUMNS = ("run", "sentence", "pivotal", "score", "word_score")
# After p, where settings were searched and where data are images.
SEARCH_COLUMNS = ("data", "settings", "state_bytes")
# After word_score, where networks were scored: the last three on reviews.
REVIEW_COLUMNS = ("attended_share", "review_score", "review_lift", "review_top")
# "class_": of the class token, the first, which the answer is read from; without: means over all queries.
SPREAD = ("entropy", "top_share", "tokens_90")
NORMS = (("key_norm", "K_norm"), ("query_norm", "Q_norm"), ("product_norm", "KQ_norm"))
ATTENTION_COLUMNS = ("run", "epoch", "block", *SPREAD, *(f"class_{name}" for name in SPREAD), *(name for name, _ in NORMS))
HISTOGRAM_COLUMNS = ("run", "map", "weight", "count")
SPEED_COLUMNS = ("optimizer", "epoch_seconds", "parameters")


def number(value, digits):
    """A number with so many significant digits; nothing for nothing."""
    return "" if value is None else f"{value:.{digits}g}"


def measured(rows, key):
    return [row[key] for row in rows if row.get(key) is not None]


def exponent(optimizer):
    """p of the potential; none for an optimizer that is not mirror descent."""
    if optimizer["name"] == "md":
        return optimizer["p"]
    return 2 if optimizer["name"] == "gd" and not optimizer.get("momentum") else None


def chosen_settings(config):
    """KEY=VALUE of what a search may decide, where it is not as by default."""
    optimizer, model = config["optimizer"], config["model"]
    values = {"optimizer.lr": optimizer["lr"]}
    if config["data"]["kind"] != "images":
        values["model.embedding_deviation"] = model.get("embedding_deviation", 1)
    values["optimizer.weight_decay"] = optimizer.get("weight_decay", 0)
    for key in ("attention_p", "attention_lr", "momentum"):
        if optimizer.get(key):
            values[f"optimizer.{key}"] = optimizer[key]
    if optimizer["name"] == "muon-adamw":
        values["optimizer.other_lr"] = optimizer["other_lr"]
    if optimizer["name"] in ("adam", "adamw", "muon-adamw"):
        values["optimizer.betas"] = ",".join(map(str, optimizer["betas"]))
    return " ".join(f"{key}={value}" for key, value in values.items())


def run_row(record):
    """One training as a row: what does not exist is left empty."""
    row = dict.fromkeys(RUN_COLUMNS + SEARCH_COLUMNS + REVIEW_COLUMNS, "")
    row |= {"run": record["id"], "config": record["config_id"], "note": record["message"]}
    row |= {key: record[key] for key in ("role", "seed", "status", "device", "date", "commit")}
    if record["config"]:
        optimizer = record["config"]["optimizer"]
        row |= {"lr": number(optimizer["lr"], 6), "p": number(exponent(optimizer), 6)}
        images = record["config"]["data"]["kind"] == "images"
        row |= {"data": "cifar10" if images else record.get("data") or "imdb", "settings": chosen_settings(record["config"]),
                "state_bytes": record.get("state_bytes") or ""}
    epochs = record["epochs"]
    row["epochs"] = len(epochs)
    if epochs:
        last = epochs[-1]
        row |= {"train_loss": number(last["train_loss"], 6), "train_accuracy": number(last["train_accuracy"], 6),
                "seconds": number(last["seconds"], 5), "best_validation": number(
                    max(measured(epochs, "validation_accuracy"), default=None), 6)}
        goal = record["config"]["train"]["stop_train_accuracy"]
        reached = [epoch["epoch"] for epoch in epochs if (epoch["train_accuracy"] or 0) >= goal]
        row["epochs_to_stop"] = min(reached, default="")
        for name in MAPS:
            row |= {f"{name}_{what}": number(last[name][key], 6)
                    for what, key in (("share", "above_0.06"), ("largest", "largest"), ("sparsity", "sparsity"))}
    # Tuning looks at a hundred test rows, which say nothing.
    tests = [] if record["role"] == "tuning" else [e for e in epochs if e["test_accuracy"] is not None]
    if tests:
        best = max(tests, key=lambda epoch: epoch["test_accuracy"])
        accuracies = measured(tests, "test_accuracy")
        row |= {"best_test": number(best["test_accuracy"], 6), "best_epoch": best["epoch"],
                "last_test": number(accuracies[-1], 6),
                "last_ten_test": number(sum(accuracies[-10:]) / len(accuracies[-10:]), 6)}
    if record["score"]:
        score = record["score"]["models"][0]
        row |= {"score": number(score["published_way"]["mean"], 6), "score_sentences": score["published_way"]["kept"],
                "word_score": number(score["words_sum"]["mean"], 6),
                "attended_share": number(statistics.fmean(
                    one["tokens_attended"] / len(one["pieces"]) for one in score["sentences"]), 4)}
    if record.get("reviews"):
        score = record["reviews"]["reviews"]["models"][0]
        row |= {f"review_{what}": number(score[what]["mean"], 6) for what in ("score", "lift", "top")}
    if record["weights"]:
        for entry in record["weights"]["models"][0]["maps"]:
            row[f"{entry['map']}_above"] = entry["above_0.06"]
    return row


def curve_rows(record):
    for epoch in record["epochs"]:
        row = {"run": record["id"], "epoch": epoch["epoch"], "train_loss": number(epoch["train_loss"], 5),
               "train_accuracy": number(epoch["train_accuracy"], 5),
               "validation_accuracy": number(epoch.get("validation_accuracy"), 5)}
        if record["role"] != "tuning":
            row |= {"test_loss": number(epoch["test_loss"], 5), "test_accuracy": number(epoch["test_accuracy"], 5)}
        # Six digits of a share give back the count of weights.
        yield row | {f"{name}_{what}": number(epoch[name][key], digits) for name in MAPS
                     for what, key, digits in (("share", "above_0.06", 6), ("largest", "largest", 4), ("sparsity", "sparsity", 4))}


def sentence_rows(record):
    """A row for each of P1's sentences and each main training that was scored. A sentence whose pivotal word WordPiece
    splits lacks the score, and one in which it does not occur lacks both."""
    if record["role"] != "main" or not record["score"]:
        return
    for place, sentence in enumerate(record["score"]["models"][0]["sentences"], 1):
        yield {"run": record["id"], "sentence": place, "pivotal": sentence["pivotal"],
               "score": number(sentence["published"], 4), "word_score": number(sentence["sum"], 4)}


def attention_rows(record):
    """A row for each block of each epoch in which attention was measured; blocks count from 1. An epoch in which weights
    were no longer finite has none."""
    for epoch in record["epochs"]:
        rows = []
        for block, measures in enumerate(epoch.get("attention") or [], 1):
            row = {"run": record["id"], "epoch": epoch["epoch"], "block": block}
            for prefix, queries in (("", "all"), ("class_", "first")):
                row |= {f"{prefix}{name}": number(measures[queries][name], 6) for name in SPREAD}
            rows.append(row | {name: number(measures[key], 6) for name, key in NORMS})
        if all(value != "" for row in rows for value in row.values()):
            yield from rows


def histogram_rows(record):
    """A row for each bin of K, Q and V that has weights; `weight` is its middle."""
    for entry in record["weights"]["models"][0]["maps"] if record["weights"] else ():
        counts, width = entry["histogram"]["counts"], entry["histogram"]["bin"]
        for place, count in enumerate(counts):
            if count:
                yield {"run": record["id"], "map": entry["map"], "weight": number((place - len(counts) // 2) * width, 6),
                       "count": count}


def kind(optimizer):
    """md, md-momentum, md-normalized, md-normalized-momentum, or the name: what has a speed of its own."""
    if optimizer["name"] != "md":
        return optimizer["name"]
    return "md" + "".join(f"-{word}" for word in ("normalized", "momentum") if optimizer.get(word))


def speed_rows(records):
    """The median time of an epoch of the tuning runs of each kind of optimizer. The first epoch of a training, in which
    steps are recorded, is left out."""
    seconds, parameters = {}, 0
    for record in records:
        if record["role"] == "tuning" and record["config"] and record["results"] and record["epochs"]:
            times = seconds.setdefault(kind(record["config"]["optimizer"]), [])
            times += [epoch["epoch_seconds"] for epoch in record["epochs"][1:]]
            parameters = record["results"]["parameters"]
    for name, times in sorted(seconds.items()):
        if times:
            yield {"optimizer": name, "epoch_seconds": number(statistics.median(times), 4), "parameters": parameters}


def csv_text(columns, rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def kept_rows(path, known, replaced=(), needed=("run",)):
    """The rows of a file of an earlier collection, without those of trainings that were made again; none where there is no
    such file. `known`: the columns that it may have."""
    if not path.is_file():
        return []
    rows = []
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames or ()
        for name in (name for name in needed if name not in names):
            raise study_plan.StudyError(f"{path} has no column {name}")
        for name in (name for name in names if name not in known):
            raise study_plan.StudyError(f"{path} has a column {name!r}, which this version does not know")
        for row in reader:
            if None in row or None in row.values():
                raise study_plan.StudyError(f"{path} line {reader.line_num}: expected {len(names)} cells")
            rows.append(row)
    return [row for row in rows if row.get("run") not in replaced]


def check_runs(path, rows):
    """What the order of rows depends on."""
    for row in rows:
        if row["role"] not in study_plan.ROLES:
            raise study_plan.StudyError(f"{path}: role of {row['run']} is {row['role']!r}: expected one of "
                                        f"{', '.join(study_plan.ROLES)}")
        for name, kind in (("seed", int), ("lr", float)):
            try:
                kind(row[name] or 0)
            except ValueError:
                raise study_plan.StudyError(f"{path}: {name} of {row['run']} is {row[name]!r}: expected a number") from None


def check_replaced(path, rows, new):
    """A training that came to its end is not replaced by one that did not."""
    for row in rows:
        record = new.get(row["run"])
        if record and row["status"] in study_plan.FINISHED and record["status"] not in study_plan.FINISHED:
            raise study_plan.StudyError(f"{path} has {row['run']}, {row['status']} after {row['epochs']} epochs, and the new record "
                                        f"is {record['status']} after {len(record['epochs'])}: take it out of RUNS, or give -o FOLDER")


def place(row):
    """Where a row of runs.csv stands: an order that depends on nothing else."""
    lr = float(row["lr"] or 0) if row["role"] == "tuning" else 0
    return list(study_plan.ROLES).index(row["role"]), row["config"], int(row["seed"] or 0), lr, row["run"]


def collect(plan, runs_folder, output, replaces):
    """Writes the files, ordered by role, config, seed and learning rate. Unless it `replaces` them, trainings that are in the
    files and not in the folder stay."""
    records = [study_plan.read_training(path) for path in sorted(pathlib.Path(runs_folder).glob("*.json"))]
    if not records:
        raise study_plan.StudyError(f"{runs_folder} has no record of a training")
    for record in records:
        if not plan.config_path(record["config_id"]).is_file():
            raise study_plan.StudyError(f"{record['id']}: there is no {plan.config_path(record['config_id'])}")
    output = pathlib.Path(output)
    new = {record["id"]: record for record in records}
    known = RUN_COLUMNS + SEARCH_COLUMNS + REVIEW_COLUMNS
    there = [] if replaces else kept_rows(output / "runs.csv", known, needed=("run", "role", "config", "seed", "lr", "status", "epochs"))
    check_runs(output / "runs.csv", there)
    check_replaced(output / "runs.csv", there, new)
    runs = sorted([row for row in there if row["run"] not in new] + list(map(run_row, records)), key=place)
    places = {row["run"]: number for number, row in enumerate(runs)}

    def joined(name, names, rows_of_record):
        rows = [] if replaces else kept_rows(output / name, names, new)
        rows += (row for record in records for row in rows_of_record(record))
        for row in rows:
            if row["run"] not in places:
                raise study_plan.StudyError(f"{output / name} has {row['run']}, and runs.csv does not")
        return sorted(rows, key=lambda row: places[row["run"]])  # stable: each training's rows keep their order

    columns = RUN_COLUMNS
    for last, more, are_there in (("p", SEARCH_COLUMNS, plan.searches or plan.data == "images"),
                                  ("word_score", REVIEW_COLUMNS, any(row.get(name) for row in runs for name in REVIEW_COLUMNS))):
        if are_there:
            after = columns.index(last) + 1
            columns = columns[:after] + more + columns[after:]
    texts = {"runs.csv": csv_text(columns, runs), "curves.csv": csv_text(CURVE_COLUMNS, joined("curves.csv", CURVE_COLUMNS, curve_rows))}
    for name, names, rows in (("sentences.csv", SENTENCE_COLUMNS, sentence_rows),
                              ("attention.csv", ATTENTION_COLUMNS, attention_rows)):
        if lines := joined(name, names, rows):
            texts[name] = csv_text(names, lines)
    if plan.data == "images":
        texts["histograms.csv"] = csv_text(HISTOGRAM_COLUMNS, joined("histograms.csv", HISTOGRAM_COLUMNS, histogram_rows))
    if plan.searches:
        speeds = list(speed_rows(records))
        kept = [] if replaces else kept_rows(output / "speed.csv", SPEED_COLUMNS, needed=("optimizer",))
        speeds += [row for row in kept if row["optimizer"] not in {speed["optimizer"] for speed in speeds}]
        texts["speed.csv"] = csv_text(SPEED_COLUMNS, sorted(speeds, key=lambda row: row["optimizer"]))
    output.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        study_plan.write_atomically(output / name, text)
    # Of an earlier collection, about trainings that are not there now; a file of somebody else's stays.
    for name, names in (("sentences.csv", SENTENCE_COLUMNS), ("attention.csv", ATTENTION_COLUMNS)):
        old = output / name
        if replaces and name not in texts and old.is_file() and old.read_bytes().startswith(csv_text(names, ()).encode()):
            old.unlink()
    missing = sorted({run.id for run in plan.runs} - set(places))
    named = f": {', '.join(missing[:8])}{', ...' if len(missing) > 8 else ''}" if missing else ""
    again = [row["run"] for row in there if row["run"] in new]
    added = f", {len(records)} of them from {runs_folder}" if len(records) < len(runs) else ""
    added += f", in the place of earlier ones {', '.join(again)}" if again else ""
    print(f"{len(runs)} trainings are in {output / 'runs.csv'}{added}; {len(missing)} of those in plan.toml are not{named}")
    return 0
