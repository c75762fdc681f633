"""Every function of the package, used once: mypy --strict reads it, and test_typing.py runs it."""

from __future__ import annotations

import pathlib
import tempfile

import numpy as np

import attmirror as am


def data_and_runs() -> None:
    data: am.Dataset = am.generate("sphere", samples=4, tokens=4, dim=5, seed=1)
    assert am.generators() and am.score_blind_key_weights().shape == (3, 3)
    own = am.Dataset(np.ones((2, 3, 2)), np.ones((2, 2)), [1, -1], [1.0, 2.0])
    assert own.samples == 2
    assert issubclass(am.PaddingWarning, UserWarning)
    rule: am.Optimizer = am.MirrorDescent(p=1.5, lr=0.1, normalized=True)
    assert am.optimizers.methods() and am.optimizer("md", p=1.5) is not rule
    records: list[int] = []

    def watch(record: am.Record) -> None:
        records.append(record.step)

    run: am.Run = am.descend(data, rule, steps=50, params="W", callback=watch)
    trace: am.Trace = run.trace
    loss: float = float(trace["loss"][-1])
    runs: list[am.Run] = am.descend_many([(data, rule), (data, am.Adam(lr=0.01))], steps=20)
    assert records and loss > 0 and len(runs) == 2
    for other in (am.GradientDescent(), am.SteepestDescent(norm="nuclear"), am.SignDescent(), am.CoordinateDescent(),
                  am.SpectralDescent(), am.Signum(), am.Muon(), am.Lion(), am.AdaGrad()):
        assert am.descend(data, other, steps=2).steps == 2

    svm: am.MarginSolution = am.max_margin(data, run.selected_tokens, norm=1.5)
    checks: am.Theory = am.theory(data, lr=0.1)
    separable: am.Assumption = checks["separable"]
    assert separable.holds
    many: am.MarginSolutions = am.max_margin_many(data, norm=[1.5, 2.0, "nuclear"])
    certificate: am.Certificate = am.verify(svm)
    near: am.Comparison = am.compare(run, svm)
    both: am.RunComparison = am.compare(runs[0], runs[1])
    side: am.RunSide = both.first
    assert both.same_tokens == (len(both.differences) == 0) and side.support.shape[1] == 3
    along: am.ComparisonTrace = am.compare_trace(run, svm)
    numbers: list[float] = [am.norm(run.W, "nuclear"), am.correlation(svm.W, run.W), near.margin_ratio, certificate.gap,
                            am.directional_bregman(svm.W, run.W, 1.5),
                            am.selection_margin(data, run.selected_tokens, run.W)]
    probabilities, tokens = am.attention(data, run.W)
    assert len(many) == 3 and len(along.step) and all(np.isfinite(numbers)) and len(probabilities) == len(tokens)


def files_and_studies(folder: pathlib.Path) -> None:
    data = am.generate(samples=4, tokens=4, dim=5, seed=1)
    data.save(folder / "data.npz")
    data = am.load_dataset(folder / "data.npz")
    run = am.descend(data, am.GradientDescent(lr=1), steps=20, out=folder / "run")
    assert am.load_run(folder / "run").steps == 20
    svm = am.max_margin(data, run)
    svm.save(folder / "svm.npz")
    assert am.load_solution(folder / "svm.npz", data)["kind"] == 2.0
    am.report(folder / "run", folder / "page.html")
    path: am.Path = am.path(data, 2, "1:10:3", starts=1)
    flow: am.Flow = am.mirror_flow(data, 2, am.log_times(1, 10, 2))
    results: am.SweepResults = am.sweep({"data": {}, "train": {"steps": 5}, "grid": {"p": [2, 3]}}, folder / "results.db")
    assert len(am.load_sweep(results.path)) == 2 and len(path) == 3 and flow.status == "completed"
    sentences = am.Sentences.generate(vocab=6, sentences=20)
    words: am.NextTokenRun = am.next_token(sentences, steps=20, ov_steps=20)
    table: am.WhichMargin = am.which_margin(trained=[run], norms=[2.0, 1.0])
    found: am.Attractors = am.attractors(data, starts=8, confirm=False)
    one: am.Attractor = found[0]
    assert found.whole is one and one.certified and len(found.ends) == 8
    study: am.Study = am.study(data, folder / "study", optimizers=["gd"], seeds=1, steps=2000)
    assert study.conclusion and len(study.results) == 1
    experiments: list[am.Experiment] = am.experiments()
    reproduction: am.Reproduction = am.reproduce("p1-setting-b", quick=True)
    report: am.Report = reproduction[0]
    finding: am.Finding = report.findings[0]
    assert words.accuracy >= 0 and table.ratios.shape == (1, 2) and experiments and finding.verdict


def own_models() -> None:
    def square(w: np.ndarray) -> tuple[float, np.ndarray]:
        return float(w @ w), 2 * w

    run: am.ObjectiveRun = am.Objective(square, {"w": 3}).descend(am.GradientDescent(lr=0.1), steps=5, init={"w": np.ones(3)})
    assert run["w"].shape == (3,)
    try:
        am.MirrorDescent(p=0.5)
    except am.InputError as error:
        assert isinstance(error, am.AttmirrorError) and error.field == "p"
    assert issubclass(am.EnvironmentFailure, OSError)
    am.set_isa(am.isa())
    assert am.version_report()


def classifier() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    model = am.AttentionClassifier(token_dim=2, steps=20).fit(X, X[:, 0] > 0)
    assert model.predict(X).shape == (30,)


def experiment() -> am.Report:
    return am.which_margin_experiment(quick=True)


if __name__ == "__main__":
    data_and_runs()
    with tempfile.TemporaryDirectory() as place:
        files_and_studies(pathlib.Path(place))
    own_models()
    classifier()
    experiment()
