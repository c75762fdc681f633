"""The trajectories and margins of a PyTorch reference, through Python."""

import numpy as np
import pytest

import attmirror as am
from conftest import FIXTURES, SHARED

GEOMETRIES = [(1.75, "p1_75"), (2, "p2"), (3, "p3")]
ALL_SEEDS = SHARED / "golden" / "md_local_seeds_001_030.npz"


def allowed(p, step):
    """The largest relative error of W that the reference allows (tests/descent/golden_test.cpp)."""
    if p == 1.75:
        return 2e-7 if step <= 100 else np.inf
    if p == 3:
        return 1e-12 if step <= 1500 else 1e-3
    return 1e-11 if step <= 100 else 1e-9 if step <= 500 else np.inf


def check_trajectories(golden):
    for seed in range(len(golden["X"])):
        data = am.Dataset(*(golden[name][seed] for name in "XZYv"))
        for p, tag in GEOMETRIES:
            steps, weights = golden[f"{tag}_steps"][seed], golden[f"{tag}_W"][seed]
            rule = am.MirrorDescent(p=p, lr=0.1, normalized=True, eps="paper")
            run = am.descend(data, rule, steps=int(steps[-1]), record=steps.tolist(), init=weights[0])
            assert run.status == "completed"
            assert run.trace["step"].tolist() == steps.tolist()
            for step, ours, theirs in zip(steps, run.trace["W"], weights):
                error = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
                assert error <= allowed(p, step), (p, seed, step, error)
            assert run.selected_tokens.tolist() == golden[f"{tag}_alpha"][seed].tolist()
            first = am.descend(data, rule, steps=63, record=1, init=weights[0], keep="metrics")
            np.testing.assert_allclose(first.trace["loss"], golden[f"{tag}_loss_first"][seed],
                                       rtol=1e-7 if p == 1.75 else 1e-13)


def check_margins(golden):
    for p, tag in GEOMETRIES:
        datasets = [am.Dataset(*(golden[name][seed] for name in "XZYv")) for seed in range(len(golden["X"]))]
        solutions = am.max_margin_many(datasets, list(golden[f"{tag}_alpha"]), p)
        assert solutions.status == ["certified"] * len(datasets)
        assert solutions.gap.max() <= 1e-10
        np.testing.assert_allclose(solutions.norm, golden[f"{tag}_svm_norm"], rtol=1e-9)


def test_trajectories_of_three_seeds():
    check_trajectories(np.load(FIXTURES / "golden_local.npz"))


@pytest.mark.skipif(not ALL_SEEDS.exists(), reason="the shared golden data are absent")
def test_trajectories_of_thirty_seeds():
    check_trajectories(np.load(ALL_SEEDS))


def test_ninety_margins():
    check_margins(np.load(FIXTURES / "golden_margins.npz"))


@pytest.mark.skipif(not ALL_SEEDS.exists(), reason="the shared golden data are absent")
def test_margins_of_the_shared_seeds():
    golden = np.load(ALL_SEEDS)
    check_margins(golden)
    for p, tag in GEOMETRIES:
        for seed in (0, 29):
            data = am.Dataset(*(golden[name][seed] for name in "XZYv"))
            svm = am.max_margin(data, golden[f"{tag}_alpha"][seed], p)
            theirs = golden[f"{tag}_svm_W"][seed]
            assert np.linalg.norm(svm.W - theirs) <= 1e-5 * np.linalg.norm(theirs)
