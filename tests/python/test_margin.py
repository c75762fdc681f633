"""Max-margin problems, their certificates, and comparisons."""

import json
import pickle

import numpy as np
import pytest

import attmirror as am
from conftest import bits, command


@pytest.mark.parametrize("norm", [1, 1.1, 1.75, 2, 3, np.inf, "nuclear", "spectral", "schatten:1.5"])
def test_every_norm_is_certified(data, norm):
    svm = am.max_margin(data, norm=norm)
    assert svm.status == "certified" and svm.gap <= 1e-8 and svm.verify().certified
    assert svm.norm == pytest.approx(am.norm(svm.W, norm), rel=1e-12)
    assert am.selection_margin(data, svm.tokens, svm.W) == pytest.approx(1, abs=1e-9)
    assert svm.kind == norm and svm.margin == pytest.approx(1 / svm.norm)


def test_bits_of_the_command(tmp_path, data):
    data.save(tmp_path / "data.npz")
    for norm in (1.75, 3, "nuclear"):
        done = command("margin", tmp_path / "data.npz", "--norm", norm, "-o", tmp_path / "svm.npz", "--json")
        assert done.returncode == 0, done.stderr
        svm = am.max_margin(data, norm=norm)
        there = np.load(tmp_path / "svm.npz")
        assert bits(svm.W, there["W"]) and bits(svm.lambda_, there["lambda"]) and bits(svm.support, there["support"])
        assert bits(svm.constraints, there["constraints"]) and json.loads(done.stdout)["norm"] == svm.norm
        saved = am.load_solution(tmp_path / "svm.npz", data)
        assert bits(saved["W"], svm.W) and saved["kind"] == norm and saved["tokens"].tolist() == svm.tokens.tolist()
        svm.save(tmp_path / "ours.npz")
        assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "svm.npz").read_bytes()


def test_tokens_in_all_forms(data, rule):
    run = am.descend(data, rule, steps=300)
    by_run = am.max_margin(data, run, 1.75)
    assert bits(by_run.W, am.max_margin(data, run.selected_tokens, 1.75).W)
    assert bits(by_run.W, am.max_margin(data, run.selected_tokens.tolist(), 1.75).W)
    assert bits(am.max_margin(data, "optimal").W, am.max_margin(data).W)
    assert bits(am.max_margin(data, run.selected_tokens.astype(np.int32), 1.75).W, by_run.W)


def test_many(data):
    sets = [am.generate(seed=seed) for seed in range(1, 9)]
    many = am.max_margin_many(sets, norm=1.75, threads=2)
    assert len(many) == 8 and many.certified == 8
    for one, svm in zip(sets, many):
        assert bits(svm.W, am.max_margin(one, norm=1.75).W)
    norms = am.max_margin_many(data, norm=[1.5, 2, "nuclear"])
    assert [svm.kind for svm in norms] == [1.5, 2, "nuclear"] and norms[-1].kind == "nuclear" and len(norms[:2]) == 2
    tokens = np.array([data.optimal_tokens] * 4)
    tokens[1:, 0] = [0, 1, 2]
    selections = am.max_margin_many(data, tokens)
    assert [svm.tokens[0] for svm in selections] == [3, 0, 1, 2]
    with pytest.raises(ValueError, match=r"have \[3, 4\] entries: expected equal numbers, or one for all"):
        am.max_margin_many(data, tokens, [1.5, 2, 3])


def test_infeasible_is_proved():
    data = am.generate(samples=10, tokens=5, dim=2, seed=1)
    svm = am.max_margin(data)
    assert svm.status == "infeasible" and np.isnan(svm.W).all() and len(svm.conflict) > 0
    assert svm.verify().dual > 1e9


def test_problems(data):
    for problem in ("prompt", "decoder"):
        svm = am.max_margin(am.generate("multi-input"), problem=problem)
        assert svm.W.ndim == 1 and svm.problem == problem
    relaxed = am.max_margin(am.generate("joint-prompt", label_margin="slack"), [1, 1, 1], problem="relaxed")
    assert relaxed.status == "certified" and relaxed.problem == "relaxed"
    assert relaxed.W.shape == (2,) and abs(relaxed.norm - 1) < 1e-9
    joint = am.generate("joint-prompt", label_margin="slack")
    run = am.descend(joint, am.GradientDescent(lr=0.1, normalized=True), steps=2000, train="W,v", init="normal:1",
                     init_seed=3)
    of_run = am.max_margin(joint, run, problem="relaxed")
    by_bounds = am.max_margin(joint, run, bounds=[1, 1, 0])
    assert of_run.W.shape == (2, 2) and of_run.problem == "relaxed"
    assert (of_run.W == by_bounds.W).all()
    with pytest.raises(ValueError, match="bounds is given, but problem is decoder"):
        am.max_margin(joint, [1, 1, 1], problem="decoder", bounds=[1, 1, 0])
    kept = [[int(t), (int(t) + 1) % 8] for t in data.optimal_tokens]
    kept = [sorted(row) for row in kept]
    direction = am.max_margin(data, problem="general-direction", kept=kept)
    assert direction.status == "certified" and direction.tokens is None
    finite = am.max_margin(data, problem="general-finite", kept=kept, logits=np.zeros((6, 8)))
    assert finite.norm == 0


def test_verify_anything(data):
    svm = am.max_margin(data, norm=3)
    again = am.verify(data, svm.tokens, 3, W=svm.W, lambda_=svm.lambda_)
    assert again == svm.verify() and again.certified
    worse = am.verify(data, svm.tokens, 3, W=1.1 * svm.W, lambda_=svm.lambda_)
    assert not worse.certified and worse.feasible and worse.gap > 0.05
    short = am.verify(data, svm.tokens, 3, W=0.9 * svm.W, lambda_=svm.lambda_)
    assert not short.feasible and not short.certified
    with pytest.raises(TypeError, match="multipliers"):
        am.verify(data, svm.tokens, 3, W=svm.W)


def test_warm_start_gives_an_answer_as_good(data):
    near = am.max_margin(data, norm=1.9)
    assert am.max_margin(data, norm=1.85, start=near).status == "certified"


@pytest.mark.parametrize("make, message", [
    (lambda data: am.max_margin(data, norm=0.5), "norm is 0.5: expected a number from 1 to infinity"),
    (lambda data: am.max_margin(data, norm="cubic"), "cubic"),
    (lambda data: am.max_margin(data, [1, 2]), "2"),
    (lambda data: am.max_margin(data, [99] * 6), "99"),
    (lambda data: am.max_margin(data, "best"), 'tokens is "best"'),
    (lambda data: am.max_margin(data, problem="dual"), 'problem is "dual": expected attention, prompt'),
    (lambda data: am.max_margin(data, tol=-1), "tol"),
    (lambda data: am.max_margin(data, method="active-set", norm=1), "active-set|active set|method"),
    (lambda data: am.max_margin(data, generation="maybe"), 'generation is "maybe"'),
])
def test_refused(data, make, message):
    with pytest.raises(ValueError, match=message):
        make(data)


def test_tokens_must_be_whole_numbers(data):
    with pytest.raises(TypeError, match="tokens has the type float64"):
        am.max_margin(data, np.zeros(6))


def test_pickle_and_shown(data):
    for svm in (am.max_margin(data, norm=1.5), am.max_margin(am.generate("multi-input"), problem="prompt"),
                am.max_margin(am.generate(samples=10, tokens=5, dim=2, seed=1))):
        again = pickle.loads(pickle.dumps(svm))
        assert bits(again.W, svm.W) and bits(again.support, svm.support) and again.status == svm.status
        assert np.array_equal([again.norm, again.gap], [svm.norm, svm.gap], equal_nan=True)
        assert again.verify().dual == svm.verify().dual
    svm = am.max_margin(data)
    assert repr(svm).startswith("<attmirror.MarginSolution: ") and "certified" in svm._repr_html_()
    assert "gap" in svm.report() and svm.locally_optimal is True


def test_comparisons(data, rule):
    run = am.descend(data, rule, steps=2000)
    svm = am.max_margin(data, run, 1.75)
    along = am.compare_trace(run, svm)
    last = am.compare(run, svm)
    assert along.step.tolist() == run.trace["step"].tolist() and along.directional_bregman[-1] == last.directional_bregman
    assert last.correlation == pytest.approx(am.correlation(svm.W, run.W), rel=1e-12)
    assert last.directional_bregman == pytest.approx(am.directional_bregman(svm.W, run.W, 1.75), rel=1e-12)
    assert run.compare(svm, p=2).directional_bregman == pytest.approx(1 - last.correlation, rel=1e-6)
    assert am.compare(run, svm.W).margin_ratio == last.margin_ratio
    assert run.margin() == pytest.approx(am.selection_margin(data, run.selected_tokens, run.W))
    with pytest.raises(ValueError, match="kept metrics only"):
        am.compare_trace(am.descend(data, rule, steps=3, keep="metrics"), svm)


@pytest.mark.parametrize("optimizer, norm", [(am.SignDescent(lr=0.01), "inf"), (am.CoordinateDescent(lr=0.01), 1.0)])
def test_distance_from_all_solutions(optimizer, norm):
    data = am.generate()
    run = am.descend(data, optimizer, 3000)
    solution = am.max_margin(data, run.selected_tokens, norm)
    assert not solution.unique
    found = am.compare(run, solution)
    assert np.isnan(found.directional_bregman) and np.isnan(found.correlation)
    direction = run.W / am.norm(run.W, norm)
    assert 0 <= found.distance <= am.norm(direction - solution.W / solution.norm, norm) + 1e-6
    along = am.compare_trace(run, solution)
    assert along.distance[-1] == pytest.approx(found.distance, abs=1e-6) and np.isnan(along.distance[0])
    euclidean = am.max_margin(data, run.selected_tokens, 2)
    assert euclidean.unique and np.isnan(am.compare(run, euclidean).distance)
    spectral = am.compare(run, am.max_margin(data, run.selected_tokens, "spectral"))
    assert np.isnan(spectral.distance) and np.isnan(spectral.correlation) and np.isfinite(spectral.margin_ratio)


def test_two_runs():
    data = am.generate()
    first = am.descend(data, am.MirrorDescent(p=2, lr=0.1, normalized=True), 2000)
    second = am.descend(data, am.MirrorDescent(p=3, lr=0.1, normalized=True), 3, init="normal:1", init_seed=5)
    found = am.compare(first, second)
    where = np.flatnonzero(first.selected_tokens != second.selected_tokens)
    assert found.differences[:, 0].tolist() == where.tolist() and not found.same_tokens
    assert found.correlation == pytest.approx(am.correlation(first.W, second.W))
    assert found.first.margins["2"] == pytest.approx(
        am.selection_margin(data, first.selected_tokens, first.W) / am.norm(first.W, 2))
    assert set(found.second.margins) == {"2", "3"} and len(found.first.scores) == 6
    itself = am.compare(first, first)
    assert itself.same_tokens and itself.shared_support == len(itself.first.support) > 0
    with pytest.raises(ValueError, match="different data"):
        am.compare(first, am.descend(am.generate(seed=2), am.MirrorDescent(), 3))
    with pytest.raises(ValueError, match="shapes"):
        am.compare(first, am.descend(data, am.MirrorDescent(), 3, params="prompt"))
