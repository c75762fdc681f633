"""The assumptions of the theorems: the same answers as the command's."""

import math

import attmirror as am
import numpy as np
import pytest


def test_theory_by_hand():
    # Tokens (1, 0), (0, 1), (-1, 0) with scores 1, 0, -1: W = [[1/2, 0], [-1/2, 0]] has both other tokens on its margin.
    data = am.Dataset(X=[[[1, 0], [0, 1], [-1, 0]]], Z=[[1, 0]], Y=[1], v=[1, 0])
    checks = am.theory(data, lr=0.1)
    assert list(checks) == ["unique best", "equal scores", "separable", "all support", "initial gradient", "label margin",
                            "small step"]
    assert {name for name in checks if checks[name].holds} == {
        "unique best", "separable", "all support", "initial gradient", "small step"}
    assert checks["separable"].value == pytest.approx(math.sqrt(2))
    assert checks.lipschitz == pytest.approx(1 + 6 * math.sqrt(2))
    assert checks.tokens.tolist() == [0] and "holds" in repr(checks) and "<table" in checks._repr_html_()


def test_theory_of_other_models(data):
    factors = am.theory(data, params="KQ")
    assert factors.norm == "nuclear" and factors.lipschitz is None
    assert factors["initial gradient"].status == "does not apply"
    started = am.theory(data, params="KQ", start={"K": np.eye(10), "Q": np.eye(10)})
    assert started["initial gradient"].status in ("holds", "fails")
    prompt = am.theory(am.generate("multi-input"), params="prompt", key_weights=am.score_blind_key_weights())
    assert prompt["separable"].holds


def test_theory_refuses(data):
    with pytest.raises(ValueError, match="params is"):
        am.theory(data, params="V")
    with pytest.raises(ValueError, match="key_weights is given"):
        am.theory(data, key_weights=np.eye(10))
    with pytest.raises(ValueError, match="lr is -1"):
        am.theory(data, lr=-1.0)
    with pytest.raises(ValueError, match="no decoder"):
        am.theory(am.generate("joint-prompt"))
