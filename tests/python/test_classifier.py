"""AttentionClassifier behind scikit-learn's interface."""

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.datasets import make_classification  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

import attmirror as am  # noqa: E402

# What check_estimator asks for and this estimator cannot have, with the reason.
NOT_APPLICABLE: dict[str, str] = {}


@pytest.fixture
def problem():
    """Sequences of four tokens, of which one, anywhere, carries the class; the others are noise."""
    rng = np.random.default_rng(1)
    y = np.where(rng.random(60) < 0.5, "no", "yes")
    X = 0.3 * rng.normal(size=(60, 4, 3))
    place = rng.integers(4, size=60)
    X[np.arange(60), place, 0] += 3
    X[np.arange(60), place, 1] += np.where(y == "yes", 2, -2)
    return X.reshape(60, 12), y, place


def test_it_finds_the_token_that_matters(problem):
    X, y, place = problem
    model = am.AttentionClassifier(token_dim=3, p=1.5, steps=400).fit(X, y)
    assert model.score(X, y) == 1 and model.classes_.tolist() == ["no", "yes"]
    assert (model.selected_tokens_ == place).mean() > 0.9 and (model.select(X) == model.selected_tokens_).all()
    assert model.margin_ > 0 and abs(model.dual_gap_) <= 1e-9 and model.support_tokens_.shape[1] == 3
    assert model.attention(X).shape == (60, 4) and model.decision_function(X).shape == (60,)
    np.testing.assert_allclose(model.decision_function(X) > 0, y == "yes")


def test_pipeline_and_grid_search(problem):
    X, y, _ = problem
    search = GridSearchCV(make_pipeline(StandardScaler(), am.AttentionClassifier(token_dim=3, steps=200)),
                          {"attentionclassifier__p": [1.2, 2, 3]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9 and search.best_params_["attentionclassifier__p"] in (1.2, 2, 3)
    X, y = make_classification(n_samples=80, n_features=6, random_state=0)
    assert cross_val_score(am.AttentionClassifier(steps=300), X, y, cv=3).mean() > 0.75


def test_refused(problem):
    X, y, _ = problem
    with pytest.raises(ValueError, match="token_dim is 5: expected a divisor of 12"):
        am.AttentionClassifier(token_dim=5).fit(X, y)
    with pytest.raises(ValueError, match='query is "first": expected mean or last'):
        am.AttentionClassifier(token_dim=3, query="first").fit(X, y)
    with pytest.raises(ValueError, match="p is 0.5: expected a finite number greater than 1"):
        am.AttentionClassifier(p=0.5).fit(X, y)


def test_check_estimator():
    failed = []
    for outcome in check_estimator(am.AttentionClassifier(steps=200), on_fail=None, on_skip=None):
        if outcome["status"] == "failed":
            failed.append((outcome["check_name"], str(outcome["exception"])))
    assert {name for name, _ in failed} == set(NOT_APPLICABLE), failed
