"""Paths, flows, sweeps, next-token prediction, the published experiments, and which margin is maximized."""

import json
import sqlite3

import numpy as np
import pytest

import attmirror as am
from conftest import bits, command


def test_path(data, tmp_path):
    path = am.path(data, 1.75, "1:100:5", starts=2, out=tmp_path / "path")
    assert len(path) == 5 and path.W.shape == (5, 10, 10) and path.converged and (np.diff(path.loss) < 0).all()
    for radius, W in zip(path.radius, path.W):
        assert am.norm(W, 1.75) == pytest.approx(radius, rel=1e-9)
    svm = am.max_margin(data, path.selected[-1], 1.75)
    assert am.correlation(path.W[-1], svm.W) > 0.99 and "radius" in path._repr_html_()
    data.save(tmp_path / "data.npz")
    done = command("path", tmp_path / "data.npz", "--norm", 1.75, "--radii", "1:100:5", "--starts", 2, "-o",
                   tmp_path / "again")
    assert done.returncode == 0, done.stderr
    assert bits(np.load(tmp_path / "again" / "path.npz")["W"], path.W)
    with pytest.raises(ValueError, match="holds a path already: give overwrite=True"):
        am.path(data, 1.75, "1:100:5", starts=2, out=tmp_path / "path")
    local = am.path(data, 1.75, [10, 100], kind="local", start=svm)
    assert local.selected[-1].tolist() == svm.tokens.tolist()
    with pytest.raises(ValueError, match='kind is "all": expected global or local'):
        am.path(data, kind="all")


def test_mirror_flow(data):
    flow = am.mirror_flow(data, 2, am.log_times(1, 1e6, 2))
    assert flow.status == "completed" and flow.W.shape == (13, 10, 10) and (np.diff(flow.loss) < 0).all()
    plain = am.descend(data, am.GradientDescent(lr=0.01), steps=10_000, record=[10_000])
    assert am.correlation(am.mirror_flow(data, 2, [100.0]).W[-1], plain.W) > 0.9999
    with pytest.raises(ValueError, match="p"):
        am.mirror_flow(data, 0.5)


PLAN = {
    "data": {"samples": 4, "tokens": 4, "dim": 5},
    "train": {"normalized": True, "steps": 300},
    "grid": {"seed": range(1, 5), "p": [1.75, 3]},
}


def test_sweep_as_dict(tmp_path):
    results = am.sweep(PLAN, tmp_path / "results.db")
    assert len(results) == 8 and results.computed == 8 and not results.interrupted and set(results.axes) == {"seed", "p"}
    frame = results.frame()
    assert len(frame) == 8 and set(frame["p"]) == {1.75, 3.0} and (frame["status"].isin(["ok", "unsaturated"])).all()
    with sqlite3.connect(tmp_path / "results.db") as database:
        assert database.execute("select count(*) from runs").fetchone() == (8,)
    run = am.descend(am.generate(samples=4, tokens=4, dim=5, seed=2), am.MirrorDescent(p=3, normalized=True), steps=300)
    row = frame[(frame["p"] == 3) & (frame["seed"] == 2)].iloc[0]
    assert row["final_loss"] == run.loss
    with pytest.raises(ValueError, match="results.db"):
        am.sweep(PLAN, tmp_path / "results.db")
    assert am.sweep(PLAN, tmp_path / "results.db", resume=True).computed == 0
    assert len(am.load_sweep(tmp_path / "results.db").summary(["p"], ["final_loss"])) == 2
    polars = pytest.importorskip("polars")
    assert isinstance(results.frame("polars"), polars.DataFrame) and results.frame("polars").height == 8
    with pytest.raises(KeyError, match="there is no column los"):
        results.column("los")


def test_sweep_file_and_temporary_database(tmp_path):
    from attmirror._sweep import to_toml

    (tmp_path / "sweep.toml").write_text(to_toml(PLAN))
    results = am.sweep(tmp_path / "sweep.toml")
    path = results.path
    assert len(results) == 8 and "runs" in results._repr_html_()
    del results
    import gc
    import os

    gc.collect()
    assert not os.path.exists(path)


@pytest.mark.parametrize("plan, message", [
    ({"data": {}, "train": {"pp": 3}}, "pp"),
    ({"data": {}, "grid": {"p": [0.5]}}, "0.5"),
    ({"data": {"file": 'odd "name"\n'}, "grid": {"p": [2]}}, "odd"),
])
def test_sweeps_that_are_refused(plan, message):
    with pytest.raises(ValueError, match=message):
        am.sweep(plan)


def test_next_token(tmp_path):
    run = am.next_token(vocab=8, sentences=40, seed=1, steps=2000, ov_steps=500)
    assert run.status == "completed" and run.accuracy == 1 and set(run.targets) == {"W_ov", "W_kq"}
    assert run.targets["W_kq"].status == "certified" and run.correlation("W_kq") > 0.95
    assert run.W_kq.shape == (8, 8) and run.stages["W_ov"].steps == 500 and "stage" in run._repr_html_()
    assert 0 <= run.unseen_accuracy("longer", 20) <= 1
    (tmp_path / "sentences.txt").write_text(run.sentences.text)
    again = am.next_token(tmp_path / "sentences.txt", steps=2000, ov_steps=500)
    assert len(again.sentences) == len(run.sentences)
    joint = am.next_token(vocab=8, sentences=40, stages="joint", steps=50, targets="off",
                          optimizer=am.GradientDescent(lr=0.1, normalized=True))
    assert list(joint.stages) == ["joint"]


def test_sentences():
    lines = ["a b", "b a", "c c", "a c b", "c a b"]
    sentences = am.Sentences(lines)
    assert sentences.words == ["a", "b", "c"] and sentences.contradiction == ""
    run = am.next_token(sentences, steps=200, ov_steps=200)
    words, share = run.predict(["a c b"])
    assert words == ["b"] and share == 1
    with pytest.raises(ValueError, match="contradict each other|no word of"):
        am.next_token(["a x", "b y", "q q", "a b q x", "b a q y"], steps=5)
    with pytest.raises(TypeError, match="vocab is given, but sentences are given"):
        am.next_token(sentences, vocab=3)


def test_reproduce(tmp_path):
    ids = [experiment.id for experiment in am.experiments()]
    assert "p1-setting-b" in ids and "which-margin" in ids
    done = am.reproduce("p1-setting-b", quick=True, out=tmp_path / "out")
    assert done[0].outcome == "done" and done.count("reproduced") > 0 and done.count("differs") == 0
    assert (tmp_path / "out" / "report.html").exists() and len(done.frame()) == len(done[0].findings)
    assert done["p1-setting-b"] is done[0] and "reproduced" in repr(done)
    with pytest.raises(ValueError, match="p1-setting-x"):
        am.reproduce("p1-setting-x")


def test_report(tmp_path, data, rule):
    am.descend(data, rule, steps=20, out=tmp_path / "run")
    am.report(tmp_path / "run", tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text()


def test_which_margin(data):
    table = am.which_margin([data, am.generate(seed=2)], {
        "sign": (am.SignDescent(lr=0.1), 3000), "ℓ1.75": (am.MirrorDescent(p=1.75, normalized=True), 3000),
        "AdaGrad": (am.AdaGrad(), 500)}, norms=[1.75, float("inf")])
    assert table.ratios.shape == (3, 2) and table.samples == 2 and table.uncertified == 0
    assert table.largest[:2] == ["ℓ∞", "ℓ1.75"] and table.agrees == [True, True, None]
    assert (table.ratios <= 1 + 1e-8).all() and "ℓ1.75" in repr(table) and list(table.frame().columns) == ["ℓ1.75", "ℓ∞"]
    run = am.descend(data, am.GradientDescent(lr=0.1, normalized=True), steps=3000)
    assert am.which_margin(trained=[run], norms=[2.0, 1.0]).agrees == [True]
    with pytest.raises(TypeError, match="needs data"):
        am.which_margin(trained=[am.Adam()])


def test_which_margin_by_words_is_the_command(data, tmp_path):
    table = am.which_margin(data, ["gd", "sign"], norms=[2.0, float("inf")], steps=3000)
    assert table.agrees == [True, True] and table.states == [["near_limit"]] * 2 and table.worst_gap < 1e-8
    assert "maximizes the ℓ2 margin" in table.conclusion
    data.save(tmp_path / "data.npz")
    done = command("which-margin", tmp_path / "data.npz", "--optimizers", "gd,sign", "--norms", "2,inf", "--steps", 3000,
                   "--json")
    assert done.returncode == 0, done.stderr
    assert bits(np.array([row["shares"] for row in json.loads(done.stdout)["rows"]]), table.ratios)
    early = am.which_margin(data, ["gd"], steps=10)
    assert early.states == [["unsaturated"]] and "not decided" in repr(early)
    with pytest.raises(ValueError, match='unknown optimizer "sgn".*did you mean "sign"'):
        am.which_margin(data, ["sgn"])
    with pytest.raises(TypeError, match="params"):
        am.which_margin(data, ["gd"], params="KQ")


def test_attractors_are_those_of_the_command(tmp_path):
    data = am.Dataset(X=[[[1.0, 0], [0, 1], [0, -1]], [[0, 3], [2, 0], [2, -1]]], Z=[[1.0, 0], [1, 0]], Y=[1.0, -1], v=[1.0, 0])
    found = am.attractors(data, params="prompt", starts=200)
    assert [one.kind for one in found] == ["whole", "partial"] and found.complete and len(found.ends) == 200
    partial = found.partial[0]
    assert found.whole is found[0] and np.allclose(found.whole.W, [4, 3]) and np.allclose(partial.W, [1, 0])
    assert partial.certified and partial.confirmed and not partial.locally_optimal and list(partial.held) == [0]
    query, token, size = partial.deficits[0]
    assert (query, token) == (1, 0) and abs(size - 2) < 1e-9 and partial.flow.stayed and partial.flow.lead > 600
    assert (found.ends == 1).sum() == partial.starts and not found.condition.holds and found.condition.equal_scores
    assert "partial" in repr(found) and "wrong tokens" in found.conclusion and "<table" in found._repr_html_()
    data.save(tmp_path / "data.npz")
    done = command("attractors", tmp_path / "data.npz", "--params", "prompt", "--starts", 200, "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["conclusion"] == found.conclusion
    assert bits(np.array([one["norm"] for one in shown["attractors"]]), np.array([one.norm for one in found]))
    assert am.attractors(data, starts=0, confirm=False)[0].starts is None
    blind = am.attractors(data, params="prompt", key_weights=np.diag([1.0, 0]), starts=0, confirm=False)
    assert blind.whole is None
    with pytest.raises(ValueError, match="only a prompt"):
        am.attractors(data, key_weights=np.eye(2))
    with pytest.raises(ValueError, match="p is 3"):
        am.attractors(data, params="KQ", p=3)


def test_study_is_the_command(data, tmp_path):
    data.save(tmp_path / "data.npz")
    done = am.study(tmp_path / "data.npz", tmp_path / "study", optimizers=["md", "gd"], p=[1.5, 3], seeds=2, steps=500)
    assert len(done.results) == 6 and "own norm" in done.conclusion and "<html" in open(done.report).read()
    shown = command("study", tmp_path / "data.npz", "--optimizers", "md,gd", "--p", "1.5,3", "--seeds", 2, "--steps", 500,
                    "-o", tmp_path / "again", "--quiet")
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "again" / "sweep.toml").read_text() == (tmp_path / "study" / "sweep.toml").read_text()
    again = am.load_sweep(tmp_path / "again" / "results.db")
    assert bits(again.column("own.margin_ratio"), done.results.column("own.margin_ratio"))
    with pytest.raises(ValueError, match="is there already"):
        am.study(data, tmp_path / "study")
    assert am.study(tmp_path / "data.npz", tmp_path / "study", optimizers=["md", "gd"], p=[1.5, 3], seeds=3, steps=500,
                    resume=True).results.computed == 3


def test_which_margin_experiment():
    report = am.which_margin_experiment(quick=True)
    assert report.id == "which-margin" and report.count("reproduced") > 10


def test_command():
    shown = command("--version")
    assert shown.returncode == 0 and shown.stdout.startswith(f"attmirror {am.__version__}")
    assert command("train").returncode == 2
    assert am.version_report().startswith("attmirror ") and am.isa() in ("sse2", "avx2", "avx512")
    with pytest.raises(ValueError, match="mmx"):
        am.set_isa("mmx")


def test_json_of_the_command_reads_our_data(tmp_path):
    am.generate(min_tokens=2, seed=5).save(tmp_path / "ragged.npz")
    done = command("info", tmp_path / "ragged.npz", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)
