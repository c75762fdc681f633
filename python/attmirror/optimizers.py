"""The optimizers: one class per method, made from the tables of their fields in the library.

    MirrorDescent(p=1.1, lr=0.1, normalized=True)

Keyword arguments, defaults, ranges and docstrings are those of the command's options. A setting that has no effect on
the method is refused.
"""

from __future__ import annotations

import inspect
from typing import Any

from . import _core, _html, _naming


class Optimizer:
    """How a gradient moves the weights. Use one of the subclasses."""

    __slots__ = ("_handle",)
    method = ""
    _handle: Any

    def __init__(self, **settings: Any) -> None:
        if not self.method:
            raise TypeError(f"Optimizer is made by its subclasses: {', '.join(_classes_by_name)}")
        self._handle = _core.Optimizer(self.method, settings)

    @staticmethod
    def _of(handle: Any) -> Optimizer:
        made = _classes[handle.method].__new__(_classes[handle.method])
        made._handle = handle
        return made

    def settings(self) -> dict[str, Any]:
        """Every setting that has an effect, defaults included."""
        return dict(self._handle.settings())

    @property
    def geometry_norm(self) -> Any:
        """The norm whose margin theory says it maximizes, or None."""
        return self._handle.geometry_norm()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            settings = self.settings()
            if name in settings:
                return settings[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Optimizer) and self._handle.describe() == other._handle.describe()

    def __hash__(self) -> int:
        return hash(self._handle.describe())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self.method, self.settings()))

    def __repr__(self) -> str:
        defaults = {name: field.default for name, field in inspect.signature(type(self)).parameters.items()}
        shown = [f"{name}={value!r}" for name, value in self.settings().items()
                 if name in ("p", "lr", "norm") or value != defaults.get(name)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return _html.facts(type(self).__name__, self.settings().items())


def _make_class(method: str, title: str, fields: list[Any]) -> type[Optimizer]:
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY,
                                    default=inspect.Parameter.empty if needed else default)
                  for name, default, _, _, _, needed, _ in fields]
    name = _naming.class_name(title)
    return type(name, (Optimizer,), {
        "__slots__": (),
        "__doc__": _naming.docstring(title, fields),
        "__module__": __name__,
        "__signature__": inspect.Signature(parameters),
        "method": method,
    })


_classes: dict[str, type[Optimizer]] = {
    method: _make_class(method, title, fields) for method, title, fields in _core.methods()
}
_classes_by_name = {cls.__name__: cls for cls in _classes.values()}
globals().update(_classes_by_name)

__all__ = ["Optimizer", "optimizer", "methods", *_classes_by_name]


def _restore(method: str, settings: dict[str, Any]) -> Optimizer:
    return _classes[method](**settings)


def optimizer(method: str, **settings: Any) -> Optimizer:
    """The optimizer of the command's name: optimizer("md", p=3)."""
    if method not in _classes:
        raise ValueError(f"method is {method!r}: expected one of {', '.join(_classes)}")
    return _classes[method](**settings)


def methods() -> dict[str, type[Optimizer]]:
    """All optimizers, by the command's names."""
    return dict(_classes)
