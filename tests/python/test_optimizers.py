"""Optimizers: classes from the tables of their fields."""

import inspect
import pickle

import pytest

import attmirror as am


def test_one_class_for_each_method():
    methods = am.optimizers.methods()
    assert list(methods) == ["md", "gd", "steepest", "sign", "coordinate", "spectral", "signum", "muon", "adam", "lion",
                             "adagrad"]
    for name, cls in methods.items():
        assert getattr(am, cls.__name__) is cls and cls.method == name


def test_signatures_and_docstrings_are_the_tables():
    parameters = inspect.signature(am.MirrorDescent).parameters
    assert parameters["p"].default == 2 and parameters["lr"].default == 0.1 and parameters["normalized"].default is False
    assert "momentum" in parameters and "norm" not in parameters
    assert inspect.signature(am.Muon).parameters["momentum"].default == "ema:0.95"
    assert inspect.signature(am.SteepestDescent).parameters["norm"].default is inspect.Parameter.empty
    assert "step size (a finite number greater than 0)" in am.MirrorDescent.__doc__
    assert "lp, schatten, entropy" in am.MirrorDescent.__doc__


def test_settings_and_attributes():
    rule = am.MirrorDescent(p=1.1, lr=0.5, normalized=True)
    assert rule.p == 1.1 and rule.lr == 0.5 and rule.normalized is True and rule.geometry == "lp"
    assert repr(rule) == "MirrorDescent(p=1.1, lr=0.5, normalized=True)"
    assert rule.geometry_norm == 1.1 and am.Muon().geometry_norm == "spectral" and am.AdaGrad().geometry_norm is None
    assert rule == am.optimizer("md", p=1.1, lr=0.5, normalized=True) != am.MirrorDescent(p=1.1)
    with pytest.raises(AttributeError):
        rule.momentums


@pytest.mark.parametrize("cls", [cls for name, cls in am.optimizers.methods().items() if name != "steepest"])
def test_pickle(cls):
    rule = cls(lr=0.25)
    again = pickle.loads(pickle.dumps(rule))
    assert again == rule and type(again) is cls and again.settings() == rule.settings()


@pytest.mark.parametrize("make, message", [
    (lambda: am.MirrorDescent(p=0.9), "p is 0.9: expected a finite number greater than 1"),
    (lambda: am.MirrorDescent(lr=float("nan")), "lr is nan: expected a finite number greater than 0"),
    (lambda: am.MirrorDescent(entropy_beta=1), "entropy_beta is given, but geometry is lp: only entropy has one"),
    (lambda: am.MirrorDescent(geometry="entropy", p=3), "p is given, but geometry is entropy: it has entropy_beta instead"),
    (lambda: am.Adam(momentum="ema"), "momentum is given, but optimizer is adam: only md, gd, steepest"),
    (lambda: am.SignDescent(normalized=False), "normalized is false, but optimizer is sign: its steps are normalized"),
    (lambda: am.MirrorDescent(geometry="cube"), 'geometry is "cube"'),
    (lambda: am.GradientDescent(schedule="polyak", normalized=True), "schedule is polyak with normalized steps"),
    (lambda: am.optimizer("sgd"), "method is 'sgd': expected one of md, gd"),
])
def test_refused_in_the_words_of_the_command(make, message):
    with pytest.raises(ValueError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize("make, message", [
    (lambda: am.MirrorDescent(q=3), "has no argument q"),
    (lambda: am.MirrorDescent(lrr=3), 'did you mean "lr"?'),
    (lambda: am.MirrorDescent(p="3"), "p is '3': expected a number"),
    (lambda: am.MirrorDescent(normalized=1), "normalized is 1: expected True or False"),
    (lambda: am.MirrorDescent(1.5), "positional"),
    (lambda: am.Optimizer(), "made by its subclasses"),
])
def test_wrong_types(make, message):
    with pytest.raises(TypeError) as caught:
        make()
    assert message in str(caught.value)


def test_numpy_numbers():
    import numpy as np

    assert am.MirrorDescent(p=np.float32(1.5), normalized=np.bool_(True)).p == 1.5
    assert am.SteepestDescent(norm=np.float64(3)).norm == "3"
    assert am.SteepestDescent(norm=float("inf")).norm == "inf"
