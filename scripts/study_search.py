"""The search for an optimizer's settings, for training_study.py: the same steps, and at most the same number of trainings, for
every optimizer of a study.

All trainings of a search have one seed, and the accuracy on held-out reviews after the last epoch decides. From the learning
rate at which a search begins:

  1. the learning rate goes up by `factor` as long as that is better, otherwise down as long as that is better or as
     nothing has been learned;
  2. the embeddings begin with the other deviation; where that is better, the learning rate moves on from there;
  3. the weights decay, a little and more;
  4. what the optimizer has besides, one thing at a time ("also");
  5. the learning rate goes half a factor up and down.

Each step begins at the best setting so far. A search ends with its last step, or after `trials` trainings. What comes next
depends on the records alone, so a search that was stopped goes on where it was.
"""
import dataclasses

from study_plan import Run, StudyError

FIRST_STEPS = 5  # learning rates at most of step 1: the other steps are to have their turn, too
NEXT_STEPS = 3   # of step 2
CHANCE = 0.55    # of two classes; whoever has no more has learned nothing


@dataclasses.dataclass(frozen=True)
class Point:
    """Where a search stands: a learning rate as a power of `factor`, and places in its lists of choices."""
    step: float = 0
    deviation: int = 0
    decay: int = 0  # 0: none
    also: int = 0   # 0: nothing


@dataclasses.dataclass(frozen=True)
class Search:
    """How the settings of one config are searched."""
    config: str
    lr: float            # where it begins
    priority: int
    seed: int
    trials: int          # at most
    factor: float
    deviations: tuple    # of the initial embeddings; the first is where it begins
    decays: tuple        # weight decays; under "shrink", shares instead
    shrink: bool         # decays are given as the logarithm of what they would shrink weights by over a training
    steps: int           # of a training, for shrink
    tied: tuple          # (KEY, ratio): settings that follow the learning rate
    also: tuple          # each a tuple of KEY=VALUE
    set: tuple           # KEY=VALUE of every training

    def rate(self, point):
        return float(f"{self.lr * self.factor ** point.step:.3g}")

    def decay(self, point):
        """The weight decay of w <- (1 - lr decay) w; a cosine's mean learning rate is half its largest."""
        if point.decay == 0:
            return 0.0
        chosen = self.decays[point.decay - 1]
        return float(f"{2 * chosen / (self.rate(point) * self.steps):.3g}") if self.shrink else chosen

    def settings(self, point):
        """KEY -> value, of everything that the search decides."""
        lr = self.rate(point)
        values = {"optimizer.lr": lr, "model.embedding_deviation": self.deviations[point.deviation],
                  "optimizer.weight_decay": self.decay(point)}
        values |= {key: float(f"{ratio * lr:.3g}") for key, ratio in self.tied}
        if point.also:
            values |= dict(setting.split("=", 1) for setting in self.also[point.also - 1])
        return values

    def run(self, point):
        values = self.settings(point)
        label = f"lr{values['optimizer.lr']}"
        label += f"-e{values['model.embedding_deviation']}" if point.deviation else ""
        label += f"-wd{values['optimizer.weight_decay']}" if point.decay else ""
        label += f"-also{point.also}" if point.also else ""
        chosen = tuple(f"{key}={value}" for key, value in values.items() if key != "optimizer.lr")
        return Run(self.config, "tuning", self.seed, self.priority, values["optimizer.lr"], self.set + chosen, label)


def points(search):
    """Yields the points to be tried and is sent their accuracies (None: it diverged); returns the best point."""
    known = {}

    def ask(point):
        if point not in known:
            accuracy = yield point
            known[point] = -1.0 if accuracy is None else accuracy
        return known[point]

    def better(point, than):
        """Whether a point beats the best so far. Of two that are equal, the one that was tried first stays."""
        return (yield from ask(point)) > known[than]

    def climb(start, most):
        """The best learning rate, from a point on, with at most so many trainings beside it."""
        best, left = start, most
        for direction in (1, -1):
            while left > 0:
                left -= 1
                neighbor = dataclasses.replace(best, step=best.step + direction)
                is_better = yield from better(neighbor, best)
                if not is_better and (direction > 0 or known[best] > CHANCE):
                    break
                best = neighbor
            if best != start:
                break
        return best

    start = Point()
    yield from ask(start)
    best = yield from climb(start, FIRST_STEPS - 1)
    for deviation in range(1, len(search.deviations)):
        other = dataclasses.replace(best, deviation=deviation)
        if (yield from better(other, best)):
            best = yield from climb(other, NEXT_STEPS - 1)
    for key, choices in (("decay", search.decays), ("also", search.also)):
        from_here = best
        for number in range(1, len(choices) + 1):
            other = dataclasses.replace(from_here, **{key: number})
            if (yield from better(other, best)):
                best = other
    for half in (0.5, -0.5):
        other = dataclasses.replace(best, step=best.step + half)
        if (yield from better(other, best)):
            return other
    return best


def progress(search, accuracy_of):
    """(the next run, or None at the end; [(run, accuracy) of all that were tried]). `accuracy_of` gives the accuracy of a
    run, None where it diverged, and raises KeyError where it has not finished."""
    walk, tried = points(search), []
    try:
        point = next(walk)
        while len(tried) < search.trials:
            run = search.run(point)
            try:
                accuracy = accuracy_of(run)
            except KeyError:
                return run, tried
            tried.append((run, accuracy, point))
            point = walk.send(accuracy)
    except StopIteration:
        pass
    return None, tried


def winner(search, tried):
    """(KEY -> value, accuracy) of the best; the first of several that are equal."""
    usable = [(accuracy, point) for _, accuracy, point in tried if accuracy is not None]
    if not usable:
        raise StudyError(f"all tuning runs of {search.config} diverged: give it a smaller learning rate in plan.toml")
    accuracy, point = max(usable, key=lambda pair: pair[0])
    return search.settings(point), accuracy


NUMBER = (int, float)
# What [search] has: its type, and what that is called.
COMMON = {"trials": (int, "a whole number"), "factor": (NUMBER, "a number"), "steps": (int, "a whole number"),
          "seed": (int, "a whole number"), "embedding_deviations": (list, "a list of numbers"),
          "shrinkages": (list, "a list of numbers"), "set": (list, "a list of KEY=VALUE")}


def check_settings(settings, where):
    """That a list has KEY=VALUE and nothing else."""
    for setting in settings if isinstance(settings, list) else [settings]:
        if not isinstance(settings, list) or not isinstance(setting, str) or "=" not in setting:
            raise StudyError(f"{where} has {setting!r}: expected a list of KEY=VALUE")


def read_common(plan, where):
    """The table [search] of a plan.toml: what all searches have in common."""
    common = {"set": []} | plan.get("search", {})
    if unknown := set(common) - set(COMMON):
        raise StudyError(f"{where}: search: unknown key {min(unknown)}: expected {', '.join(COMMON)}")
    for key, (kind, name) in COMMON.items():
        if key not in common:
            raise StudyError(f"{where}: search: {key} is missing: expected {name}")
        if not isinstance(common[key], kind) or isinstance(common[key], bool):
            raise StudyError(f"{where}: search: {key} is {common[key]!r}: expected {name}")
    for key in ("embedding_deviations", "shrinkages"):
        for value in common[key]:
            if not isinstance(value, NUMBER):
                raise StudyError(f"{where}: search: {key} has {value!r}: expected numbers")
    check_settings(common["set"], f"{where}: search: set")
    return common


def read_searches(plan, folder, where):
    """The searches of a plan.toml, already parsed."""
    if not plan.get("searches"):
        return ()
    common = read_common(plan, where)
    searches = []
    for number, entry in enumerate(plan.get("searches", []), 1):
        at = f"{where}: searches entry {number}"
        if unknown := set(entry) - {"config", "lr", "priority", "weight_decays", "tied", "also", "set"}:
            raise StudyError(f"{at}: unknown key {min(unknown)}")
        for key, kind, name in (("config", str, "a name"), ("lr", NUMBER, "a number")):
            if not isinstance(entry.get(key), kind):
                raise StudyError(f"{at}: {key} is {entry.get(key)!r}: expected {name}")
        check_settings(entry.get("set", []), f"{at}: set")
        if not isinstance(entry.get("also", []), list):
            raise StudyError(f"{at}: also is {entry['also']!r}: expected a list of lists of KEY=VALUE")
        for choice in entry.get("also", []):
            check_settings(choice, f"{at}: also")
        if not (folder / "configs" / f"{entry['config']}.toml").is_file():
            raise StudyError(f"{at}: config is {entry['config']!r}: there is no configs/{entry['config']}.toml")
        own = "weight_decays" in entry
        searches.append(Search(
            config=entry["config"], lr=entry["lr"], priority=entry.get("priority", 1), seed=common["seed"],
            trials=common["trials"], factor=common["factor"], deviations=tuple(common["embedding_deviations"]),
            decays=tuple(entry["weight_decays"] if own else common["shrinkages"]), shrink=not own, steps=common["steps"],
            tied=tuple(entry.get("tied", {}).items()), also=tuple(map(tuple, entry.get("also", []))),
            set=tuple(common.get("set", []) + entry.get("set", []))))
    return tuple(searches)
