"""Figures with matplotlib, sized for a paper's column.

Each function returns the figure; those that take `ax` or `axes` draw into yours. Colours are told apart by readers who
do not see all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._descent import Run
    from ._margin import MarginSolution
    from ._paths import Path
    from ._sweep import SweepResults
    from ._which_margin import WhichMargin

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#666666"

STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "pdf.fonttype": 42,
}

NAMES = {
    "loss": "loss",
    "max_softmax": "mean largest probability",
    "norm": "norm of the weights",
    "final_loss": "loss at the end",
    "weight_norm": "norm of the weights",
    "steps": "steps",
    "seconds": "seconds",
    "own.bregman": "divergence from each run's own\nmax-margin solution",
    "own.correlation": "correlation with each run's own\nmax-margin solution",
    "own.margin_ratio": "share of the largest margin",
}


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    return pyplot


def _panels(axes: Any, count: int, width: float = 2.3, height: float = 2.0) -> tuple[Any, list[Any]]:
    """As many axes as a figure needs: given ones, or new ones side by side."""
    pyplot = _pyplot()
    if axes is not None:
        given = list(np.ravel(axes))
        if len(given) < count:
            raise ValueError(f"axes has {len(given)} entries: expected {count}")
        return given[0].figure, given
    figure, made = pyplot.subplots(1, count, figsize=(width * count, height), layout="constrained", squeeze=False)
    return figure, list(made[0])


def _steps(ax: Any) -> None:
    """Steps from 0 on, the first ones as far apart as the last."""
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xlim(left=0)
    ax.set_xlabel("step")


def _log_where_wide(ax: Any, values: Any) -> None:
    """A logarithmic axis where the values span more than a factor of ten."""
    positive = values[np.isfinite(values) & (values > 0)]
    if len(positive) and positive.max() > 10 * positive.min():
        ax.set_yscale("log")


def plot_run(run: Run, solution: MarginSolution | None = None, axes: Any = None) -> Any:
    """Loss, largest attention probability and norm along a run; with a solution, the divergence from it."""
    from ._compare import compare_trace

    pyplot = _pyplot()
    with pyplot.rc_context(STYLE):
        figure, panels = _panels(axes, 3 if solution is None else 4)
        step = run.trace["step"]
        for ax, name, color, title in zip(panels, ("loss", "max_softmax", "norm"), (BLUE, GREEN, GREY),
                                          ("Loss", "Attention", "Norm")):
            ax.plot(step, run.trace[name], color=color, marker=".", markersize=3)
            ax.set_ylabel(NAMES[name])
            ax.set_title(title, loc="left")
            _steps(ax)
            _log_where_wide(ax, run.trace[name])
        panels[1].set_yscale("linear")
        panels[1].set_ylim(0, 1.03)
        if solution is not None:
            along = compare_trace(run, solution)
            values = along.directional_bregman if solution.unique else along.distance
            shown = np.isfinite(values) & (values > 0)
            panels[3].plot(along.step[shown], values[shown], color=ORANGE, marker=".", markersize=3)
            panels[3].set_yscale("log")
            panels[3].set_ylabel(
                "divergence from the\nmax-margin solution" if solution.unique
                else "distance from all\nmax-margin solutions" if solution.kind != "spectral"
                else "no distance: there are\nmany max-margin solutions"
            )
            panels[3].set_title("Direction", loc="left")
            _steps(panels[3])
    return figure


def plot_attention(run: Run, ax: Any = None) -> Any:
    """Attention probabilities over tokens, a row per query; the token with the best score is outlined."""
    pyplot = _pyplot()
    rows = run.attention()
    longest = max(len(row) for row in rows)
    table = np.full((len(rows), longest), np.nan)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    with pyplot.rc_context({**STYLE, "axes.grid": False}):
        if ax is None:
            size = (0.9 + 0.28 * longest, 0.7 + 0.28 * len(rows))
            figure, ax = pyplot.subplots(figsize=size, layout="constrained")
        else:
            figure = ax.figure
        image = ax.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="equal")
        for spine in ax.spines.values():
            spine.set_visible(False)
        if run.data.v is not None or "v" in run.parameters:
            for row, token in enumerate(np.ravel(run.optimal_tokens)):
                ax.add_patch(pyplot.Rectangle((token - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=1.4,
                                              clip_on=False))
        ax.set_xticks(range(longest))
        ax.set_yticks(range(len(rows)))
        ax.set_xlabel("token")
        ax.set_ylabel("sequence" if run.data.queries == run.data.samples else "query")
        ax.set_title("Attention (best token outlined)", loc="left")
        bar = figure.colorbar(image, ax=ax, fraction=0.05)
        bar.set_label("probability")
    return figure


def plot_which_margin(table: WhichMargin, ax: Any = None) -> Any:
    """Shares of the largest margin as a heat map; the norm that theory predicts is outlined."""
    pyplot = _pyplot()
    with pyplot.rc_context({**STYLE, "axes.grid": False}):
        if ax is None:
            size = (1.9 + 0.56 * len(table.norms), 0.9 + 0.24 * len(table.rows))
            figure, ax = pyplot.subplots(figsize=size, layout="constrained")
        else:
            figure = ax.figure
        image = ax.imshow(table.ratios, cmap="viridis", vmin=0, vmax=1, aspect="auto")
        for r, row in enumerate(table.ratios):
            for c, value in enumerate(row):
                if np.isfinite(value):
                    ax.text(c, r, f"{value:.2f}", ha="center", va="center", fontsize=6.5,
                            color="white" if value < 0.6 else "black")
            column = table.predicted[r]
            if column is not None:
                ax.add_patch(pyplot.Rectangle((column - 0.5, r - 0.5), 1, 1, fill=False, edgecolor="#e0301e",
                                              linewidth=1.6, clip_on=False))
        ax.set_xticks(range(len(table.norms)), table.columns)
        ax.set_yticks(range(len(table.rows)), table.rows)
        ax.tick_params(length=0)
        ax.set_xlabel("margin measured in")
        ax.set_title("Share of the largest margin (theory's norm outlined)", loc="left")
        for spine in ax.spines.values():
            spine.set_visible(False)
        figure.colorbar(image, ax=ax, fraction=0.04)
    return figure


def plot_path(path: Path, solution: MarginSolution | None = None, axes: Any = None) -> Any:
    """Loss over the radius; with a solution, 1 - correlation of each direction with it."""
    from ._compare import correlation

    pyplot = _pyplot()
    with pyplot.rc_context(STYLE):
        figure, panels = _panels(axes, 2 if solution is None else 3)
        panels[0].plot(path.radius, path.loss, color=BLUE, marker="o", markersize=3)
        panels[0].set_ylabel("least loss")
        panels[0].set_title("Loss", loc="left")
        _log_where_wide(panels[0], path.loss)
        panels[1].plot(path.radius, path.max_softmax, color=GREEN, marker="o", markersize=3)
        panels[1].set_ylabel(NAMES["max_softmax"])
        panels[1].set_ylim(0, 1.03)
        panels[1].set_title("Attention", loc="left")
        if solution is not None:
            away = np.array([1 - correlation(solution.W, W) for W in path.W])
            panels[2].plot(path.radius, np.maximum(away, 1e-16), color=ORANGE, marker="o", markersize=3)
            panels[2].set_yscale("log")
            panels[2].set_ylabel("1 − correlation with the\nmax-margin solution")
            panels[2].set_title("Direction", loc="left")
        for ax in panels[: 2 if solution is None else 3]:
            ax.set_xscale("log")
            ax.set_xlabel("radius")
    return figure


def plot_sweep(results: SweepResults, x: str | None = None, y: str | None = None, ax: Any = None) -> Any:
    """A metric against an axis: median over runs, and the range that four of five lie in."""
    pyplot = _pyplot()
    columns = results.columns()
    numeric = [name for name in results.axes if columns[name].dtype != object and "seed" not in name]
    if x is None:
        if not numeric:
            raise ValueError(f"x is not given, and no axis of the sweep is a number: expected one of {', '.join(columns)}")
        x = numeric[0]
    if y is None:
        candidates = [name for name in results.metrics if columns[name].dtype != object]
        y = "own.bregman" if "own.bregman" in candidates else candidates[0]
    for name in (x, y):
        if name not in columns:
            raise KeyError(f"there is no column {name}: expected one of {', '.join(columns)}")
        if columns[name].dtype == object:
            raise ValueError(f"the column {name} holds texts: expected one of numbers")
    positions = np.unique(columns[x])
    groups = [columns[y][(columns[x] == at) & np.isfinite(columns[y].astype(float))].astype(float) for at in positions]
    kept = [(at, values) for at, values in zip(positions, groups) if len(values)]
    with pyplot.rc_context(STYLE):
        figure, panels = _panels(None if ax is None else [ax], 1, width=3.3, height=2.4)
        centre = panels[0]
        at = np.array([pair[0] for pair in kept], dtype=float)
        low, middle, high = (np.array([np.quantile(values, q) for _, values in kept]) for q in (0.1, 0.5, 0.9))
        centre.fill_between(at, low, high, color=BLUE, alpha=0.2, linewidth=0, label="four of five runs")
        centre.plot(at, middle, color=BLUE, marker="o", markersize=3, label="median")
        if (low > 0).all() and high.max() > 30 * low.min():
            centre.set_yscale("log")
        centre.set_xlabel(x)
        centre.set_ylabel(NAMES.get(y, y))
        centre.legend()
    return figure
