"""Training: results, bits, folders, callbacks, models of one's own."""

import json
import pickle

import numpy as np
import pytest

import attmirror as am
from conftest import bits, command


def test_north_star():
    data = am.generate(samples=6, tokens=8, dim=10, seed=1)
    run = am.descend(data, am.MirrorDescent(p=1.1, lr=0.1, normalized=True), steps=2000)
    svm = am.max_margin(data, run.selected_tokens, norm=1.1)
    assert run.status == "completed" and run.W.shape == (10, 10)
    assert svm.status == "certified" and svm.gap <= 1e-10 and am.verify(svm).certified
    near = am.compare(run, svm)
    assert 0 < near.directional_bregman < 1e-3 and near.correlation > 0.999 and 0.99 < near.margin_ratio <= 1
    assert near.same_tokens


def test_trace(data, rule):
    run = am.descend(data, rule, steps=50, record=10)
    assert run.trace["step"].tolist() == [0, 10, 20, 30, 40, 50]
    assert run.trace["W"].shape == (6, 10, 10) and bits(run.trace["W"][-1], run.W)
    assert run.trace.loss is run.trace["loss"] and run.trace["loss"][-1] == run.loss
    assert set(run.trace) == {"step", "loss", "max_softmax", "norm", "W", "v"} and len(run.trace.to_frame()) == 6
    assert "W" not in am.descend(data, rule, steps=5, keep="metrics").trace
    assert am.descend(data, rule, steps=5, record=[0, 3]).trace["step"].tolist() == [0, 3, 5]
    with pytest.raises(AttributeError, match="the trace has no los"):
        run.trace.los


def test_bits_of_the_command(tmp_path, data, rule):
    data.save(tmp_path / "data.npz")
    done = command("train", tmp_path / "data.npz", "--p", 1.75, "--normalized", "--steps", 300, "-o", tmp_path / "run",
                   "--json")
    assert done.returncode == 0, done.stderr
    run = am.descend(data, rule, steps=300)
    there = np.load(tmp_path / "run" / "final.npz")
    assert bits(run.W, there["W"])
    assert run.loss == json.loads(done.stdout)["loss"]
    assert run.selected_tokens.tolist() == json.loads(done.stdout)["selected"]
    saved = am.load_run(tmp_path / "run")
    assert bits(saved.W, run.W) and bits(saved.trace["W"], run.trace["W"]) and saved.optimizer == rule
    assert saved.status == "completed" and bits(saved.selected_tokens, run.selected_tokens)


def test_run_folder_is_the_commands(tmp_path, data, rule):
    run = am.descend(data, rule, steps=40, out=tmp_path / "run")
    assert (tmp_path / "run" / "data.npz").exists() and run.folder == str(tmp_path / "run")
    assert bits(am.load_run(tmp_path / "run").W, run.W)
    svm = am.max_margin(data, run, norm=1.75)
    svm.save(tmp_path / "svm.npz")
    done = command("compare", tmp_path / "run", tmp_path / "svm.npz", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    ours = am.compare(run, svm)
    assert answer["directional_bregman"] == ours.directional_bregman and answer["margin_ratio"] == ours.margin_ratio


def test_resume_has_the_same_bits(tmp_path, data, rule):
    am.descend(data, rule, steps=30, out=tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run already: give resume=True"):
        am.descend(data, rule, steps=60, out=tmp_path / "run")
    resumed = am.descend(data, rule, steps=60, out=tmp_path / "run", resume=True)
    whole = am.descend(data, rule, steps=60)
    assert bits(resumed.W, whole.W) and resumed.status == "completed"
    with pytest.raises(ValueError, match="optimizer.p"):
        am.descend(data, am.MirrorDescent(p=3, normalized=True), steps=90, out=tmp_path / "run", resume=True)
    am.descend(data, rule, steps=5, out=tmp_path / "run", overwrite=True)
    assert am.load_run(tmp_path / "run").steps == 5


def test_a_folder_with_other_data_is_left_alone(tmp_path, data, rule):
    folder = tmp_path / "mine"
    folder.mkdir()
    am.generate(seed=9).save(folder / "data.npz")
    before = (folder / "data.npz").read_bytes()
    with pytest.raises(ValueError, match="holds other data than this run's"):
        am.descend(data, rule, steps=5, out=folder)
    assert (folder / "data.npz").read_bytes() == before and not (folder / "config.json").exists()


def test_parameterizations(data):
    rule = am.GradientDescent(lr=0.5)
    kq = am.descend(data, rule, steps=20, params="KQ", rank=3, init="normal:0.1", init_seed=4)
    assert kq.K.shape == (10, 3) and np.allclose(kq.W, kq.K @ kq.Q.T)
    prompt = am.descend(data, rule, steps=20, params="prompt", key_weights=np.eye(10))
    assert prompt.p.shape == (10,)
    with pytest.raises(AttributeError, match="a prompt has no W"):
        prompt.W
    joint = am.descend(data, rule, steps=20, train=["W", "v"])
    assert not np.array_equal(joint.v, data.v)
    assert am.descend(data, rule, steps=3, loss="exponential", head="quadratic:0.5", scaled=True).steps == 3


def test_starts(data, rule):
    W0 = np.random.default_rng(0).normal(size=(10, 10))
    assert bits(am.descend(data, rule, steps=0, init=W0).W, W0)
    assert bits(am.descend(data, rule, steps=0, init={"W": W0, "v": data.v}).W, W0)
    random = am.descend(data, rule, steps=0, init="normal:0.5", init_seed=3)
    assert 0.3 < random.W.std() < 0.7
    with pytest.raises(ValueError, match="W has shape|W is|10"):
        am.descend(data, rule, steps=0, init=W0[:3])


@pytest.mark.parametrize("settings, message", [
    (dict(steps=-1), "steps is -1: expected"),
    (dict(params="V"), 'params is "V": expected W, KQ or prompt'),
    (dict(rank=3), "rank is 3, but params is W: only KQ has a rank"),
    (dict(init_seed=3), "init_seed is given, but init is zero: only uniform and normal are random"),
    (dict(saturation=2), "saturation is 2: expected"),
    (dict(record="sometimes"), "sometimes"),
    (dict(key_weights=np.eye(10)), "key_weights are given, but params is W: only a prompt has them"),
    (dict(resume=True), "resume is given without a run folder: expected out"),
    (dict(mask="causal"), "query_index"),
])
def test_refused(data, rule, settings, message):
    with pytest.raises(ValueError) as caught:
        am.descend(data, rule, **settings)
    assert message in str(caught.value)


def test_wrong_types(data, rule):
    with pytest.raises(TypeError, match="data is a int: expected an attmirror.Dataset"):
        am.descend(3, rule)
    with pytest.raises(TypeError, match="optimizer is 'md'"):
        am.descend(data, "md")
    with pytest.raises(TypeError, match="steps is 1.5: expected a whole number"):
        am.descend(data, rule, steps=1.5)


def test_threads_change_no_bit():
    data = am.generate(samples=64, tokens=32, dim=20, seed=2)
    rule = am.MirrorDescent(p=3, normalized=True)
    assert bits(am.descend(data, rule, steps=20, threads=1).W, am.descend(data, rule, steps=20, threads=3).W)


def test_callbacks(data, rule):
    seen = []

    def watch(record):
        seen.append(record.step)
        assert record.parameters["W"].shape == (10, 10) and record.loss > 0
        if record.step >= 20:
            raise StopIteration

    run = am.descend(data, rule, steps=100, record=10, callback=watch)
    assert seen == [0, 10, 20] and run.status == "interrupted" and run.steps <= 21


def test_what_a_callback_raises_comes_out(data, rule):
    def fail(record):
        raise RuntimeError(f"at {record.step}")

    with pytest.raises(RuntimeError, match="at 0"):
        am.descend(data, rule, steps=10**9, callback=fail)


def test_a_callback_may_train(data, rule):
    inner = []
    am.descend(data, rule, steps=2, record=1, callback=lambda record: inner.append(am.descend(data, rule, steps=3).loss))
    assert len(inner) == 3 and len(set(inner)) == 1


def test_many_have_the_bits_of_one(rule):
    sets = [am.generate(seed=seed) for seed in range(1, 12)]
    runs = am.descend_many([(one, rule) for one in sets], steps=100)
    for one, run in zip(sets, runs):
        assert bits(run.W, am.descend(one, rule, steps=100).W)
    mixed = am.descend_many([(sets[0], rule, {"steps": 7}), (sets[0], am.Adam(lr=0.01))], steps=9)
    assert [run.steps for run in mixed] == [7, 9]
    assert am.descend_many([]) == []


def test_pickle(data):
    for settings in (dict(), dict(params="KQ", rank=2, init_seed=3), dict(params="prompt", key_weights=np.eye(10))):
        run = am.descend(data, am.GradientDescent(lr=0.5), steps=12, **settings)
        again = pickle.loads(pickle.dumps(run))
        assert {name: values.tobytes() for name, values in again.parameters.items()} == {
            name: values.tobytes() for name, values in run.parameters.items()}
        assert again.status == run.status and again.loss == run.loss and again.params == run.params
        assert bits(again.trace["loss"], run.trace["loss"]) and again.data == run.data
        assert bits(np.asarray(again.attention()), np.asarray(run.attention())) and again.optimizer == run.optimizer


def test_divergence_is_a_status(data):
    run = am.descend(data, am.MirrorDescent(p=1.01, lr=1e6), steps=1000)
    assert run.status == "diverged" and run.selected_tokens.size == 0


def test_shown(data, rule):
    run = am.descend(data, rule, steps=10)
    assert repr(run).startswith("<attmirror.Run: ") and "selected tokens" in run._repr_html_()


def test_attention_of_other_data(data, rule):
    run = am.descend(data, rule, steps=500)
    probabilities, tokens = am.attention(data, run.W)
    assert bits(np.asarray(run.attention()), np.asarray(probabilities)) and bits(tokens, run.selected_tokens)
    other = am.generate(samples=3, tokens=5, dim=10, seed=8)
    assert np.asarray(run.attention(other)).shape == (3, 5) and run.select(other).shape == (3,)
    np.testing.assert_allclose(np.asarray(run.attention()).sum(axis=1), 1)


def logistic(X, y):
    def function(w):
        margins = y * (X @ w)
        return np.logaddexp(0, -margins).mean(), -(X.T @ (y / (1 + np.exp(margins)))) / len(y)

    return function


def test_objective_of_ones_own(tmp_path):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 4)), np.where(rng.random(30) < 0.5, -1.0, 1.0)
    objective = am.Objective(logistic(X, y), {"w": 4}, data={"X": X, "y": y})
    run = objective.descend(am.GradientDescent(lr=0.5), steps=200)
    w = np.zeros(4)
    for _ in range(200):
        w = w - 0.5 * logistic(X, y)(w)[1]
    np.testing.assert_allclose(run["w"], w, rtol=1e-12)
    assert run.status == "completed" and run.trace["loss"][0] == pytest.approx(np.log(2)) and run.trace["w"].shape[1] == 4

    objective.descend(am.GradientDescent(lr=0.5), steps=100, out=tmp_path / "own")
    resumed = objective.descend(am.GradientDescent(lr=0.5), steps=200, out=tmp_path / "own", resume=True)
    assert bits(resumed["w"], run["w"])
    other = am.Objective(logistic(X, -y), {"w": 4}, data={"X": X, "y": -y})
    with pytest.raises(ValueError):
        other.descend(am.GradientDescent(lr=0.5), steps=300, out=tmp_path / "own", resume=True)


def test_objective_with_two_blocks_and_mistakes():
    def factored(A, b):
        return float((A**2).sum() + (b**2).sum()), {"A": 2 * A, "b": 2 * b}

    start = {"A": np.ones((2, 3)), "b": np.ones(5)}
    run = am.Objective(factored, {"A": (2, 3), "b": (5,)}).descend(am.GradientDescent(lr=0.25), steps=1, init=start)
    assert run["A"].tolist() == [[0.5] * 3] * 2 and run["b"].tolist() == [0.5] * 5

    def wrong_shape(w):
        return 0.0, np.zeros(3)

    with pytest.raises(ValueError, match="gradient of w has 1 axes and 3 numbers"):
        am.Objective(wrong_shape, {"w": 4}).descend(am.GradientDescent(), steps=1)
    with pytest.raises(ZeroDivisionError):
        am.Objective(lambda w: 1 / 0, {"w": 4}).descend(am.GradientDescent(), steps=1)
    with pytest.raises(ValueError, match="block w has 3 axes"):
        am.Objective(wrong_shape, {"w": (1, 2, 3)}).descend(am.GradientDescent(), steps=1)
