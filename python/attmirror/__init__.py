"""attmirror: softmax attention trained by mirror descent, and the max-margin problems that it converges to.

    import attmirror as am

    data = am.generate(samples=6, tokens=8, dim=10, seed=1)
    run = am.descend(data, am.MirrorDescent(p=1.1, lr=0.1, normalized=True), steps=2000)
    svm = am.max_margin(data, run.selected_tokens, norm=1.1)
    am.compare(run, svm).directional_bregman
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

# attmirror.torch and attmirror.optax do without the compiled extension: they are there also where it was not built.
_HAS_CORE = importlib.util.find_spec(f"{__name__}._core") is not None

if TYPE_CHECKING or _HAS_CORE:
    from . import _core, optimizers
    from ._attractors import Attractor, Attractors, attractors
    from ._compare import (
        Comparison,
        ComparisonTrace,
        RunComparison,
        RunSide,
        attention,
        compare,
        compare_trace,
        correlation,
        directional_bregman,
        norm,
        selection_margin,
    )
    from ._data import Dataset, generate, generators, load_dataset, score_blind_key_weights
    from ._descent import Run, Trace, descend, descend_many, load_run
    from ._errors import AttmirrorError, EnvironmentFailure, InputError, PaddingWarning
    from ._margin import (
        Certificate,
        MarginSolution,
        MarginSolutions,
        load_solution,
        max_margin,
        max_margin_many,
        verify,
    )
    from ._next_token import NextTokenRun, Sentences, next_token
    from ._objective import Objective, ObjectiveRun
    from ._paths import Flow, Path, log_times, mirror_flow, path
    from ._reproduce import Experiment, Finding, Report, Reproduction, experiments, report, reproduce
    from ._settings import Record
    from ._study import Study, study
    from ._sweep import SweepResults, load_sweep, sweep
    from ._theory import Assumption, Theory, theory
    from ._which_margin import WhichMargin, which_margin, which_margin_experiment
    from .optimizers import (
        AdaGrad,
        Adam,
        CoordinateDescent,
        GradientDescent,
        Lion,
        MirrorDescent,
        Muon,
        Optimizer,
        SignDescent,
        Signum,
        SpectralDescent,
        SteepestDescent,
        optimizer,
    )

    __version__: str = _core.version()

if TYPE_CHECKING:
    from .classifier import AttentionClassifier


def version_report() -> str:
    """Version, commit, instruction set and compiler of the library."""
    return _core.version_report()


def set_isa(name: str) -> None:
    """Forces an instruction set: "sse2", "avx2" or "avx512". Results are the same to the bit on one set."""
    _core.set_isa(name)


def isa() -> str:
    """The instruction set in use."""
    return _core.isa()


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to import, so only those who ask for the classifier wait for it.
    if name == "AttentionClassifier":
        try:
            from .classifier import AttentionClassifier
        except ImportError as error:
            raise ImportError(f"AttentionClassifier needs scikit-learn: pip install scikit-learn ({error})") from error
        return AttentionClassifier
    # PyTorch and JAX, too, are imported by those who ask for them.
    if name in ("torch", "optax"):
        return importlib.import_module(f"{__name__}.{name}")
    if not _HAS_CORE and name in __all__:
        raise ImportError(
            f"attmirror.{name} needs the extension attmirror._core, which was not built: pip install . builds it "
            "(attmirror.torch and attmirror.optax do without)"
        )
    raise AttributeError(f"module attmirror has no attribute {name}")


__all__ = [
    "AdaGrad", "Adam", "Assumption", "AttentionClassifier", "AttmirrorError", "Attractor", "Attractors", "Certificate", "Comparison", "ComparisonTrace",
    "CoordinateDescent", "Dataset", "EnvironmentFailure", "Experiment", "Finding", "Flow", "GradientDescent",
    "InputError", "Lion", "MarginSolution", "MarginSolutions", "MirrorDescent", "Muon", "NextTokenRun", "Objective",
    "ObjectiveRun", "Optimizer", "PaddingWarning", "Path", "Record", "Report", "Reproduction", "Run",
    "RunComparison", "RunSide", "Sentences", "SignDescent",
    "Signum", "SpectralDescent", "SteepestDescent", "Study", "SweepResults", "Theory", "Trace", "WhichMargin", "attention", "attractors", "compare",
    "compare_trace", "correlation", "descend", "descend_many", "directional_bregman", "experiments", "generate",
    "generators", "isa", "load_dataset", "load_run", "load_solution", "load_sweep", "log_times", "max_margin",
    "max_margin_many", "mirror_flow", "next_token", "norm", "optimizer", "optimizers", "path", "report", "reproduce",
    "score_blind_key_weights", "selection_margin", "set_isa", "study", "sweep", "theory", "verify", "version_report", "which_margin",
    "which_margin_experiment",
]
