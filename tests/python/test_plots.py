"""Figures: each is drawn and shows what it should."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as pyplot  # noqa: E402

import attmirror as am  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def lines(figure):
    return [line for ax in figure.axes for line in ax.lines]


def test_run(data, rule, tmp_path):
    run = am.descend(data, rule, steps=500)
    figure = run.plot(am.max_margin(data, run, 1.75))
    assert len(figure.axes) == 4 and len(lines(figure)) == 4
    np.testing.assert_array_equal(lines(figure)[0].get_ydata(), run.trace["loss"])
    assert figure.axes[0].get_ylabel() == "loss" and figure.axes[0].get_xlabel() == "step"
    figure.savefig(tmp_path / "run.pdf")
    assert (tmp_path / "run.pdf").stat().st_size > 1000
    own, axes = pyplot.subplots(1, 3)
    assert run.plot(axes=axes) is own
    with pytest.raises(ValueError, match="axes has 1 entries: expected 3"):
        run.plot(axes=pyplot.subplots()[1])


def test_attention(data, rule):
    figure = am.descend(data, rule, steps=500).plot_attention()
    assert figure.axes[0].images[0].get_array().shape == (6, 8) and len(figure.axes[0].patches) == 6
    ragged = am.descend(am.generate(min_tokens=3, seed=2), rule, steps=5)
    shown = np.ma.filled(ragged.plot_attention().axes[0].images[0].get_array(), np.nan)
    assert np.isnan(shown).sum() == shown.size - ragged.data.lengths.sum() > 0


def test_path_which_margin_and_sweep(data, rule):
    path = am.path(data, 2, "1:10:3", starts=1)
    assert len(path.plot(am.max_margin(data, path.selected[-1])).axes) == 3
    run = am.descend(data, rule, steps=500)
    table = am.which_margin(trained=[run], norms=[1.75, 2.0])
    figure = table.plot()
    assert [text.get_text() for text in figure.axes[0].texts] == [f"{value:.2f}" for value in table.ratios[0]]
    assert len(figure.axes[0].patches) == 1
    results = am.sweep({"data": {"samples": 3, "tokens": 3, "dim": 4}, "train": {"steps": 50},
                        "grid": {"seed": "1:3", "p": [1.5, 2, 3]}})
    drawn = results.plot(y="final_loss")
    assert drawn.axes[0].get_xlabel() == "p" and list(lines(drawn)[0].get_xdata()) == [1.5, 2, 3]
    with pytest.raises(KeyError, match="there is no column los"):
        results.plot(y="los")
    with pytest.raises(ValueError, match="the column loss holds texts"):
        results.plot(y="loss")
