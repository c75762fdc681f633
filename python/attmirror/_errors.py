"""The errors of attmirror: each is one sentence that names the field, the index and the value."""

from __future__ import annotations

from typing import Any


class AttmirrorError(Exception):
    """What all errors of the library are.

    Attributes
    ----------
    field : str
        The argument or setting that the error is about; empty where it is about none in particular.
    index : int or None
        Where in an array.
    value : str
        What was found there, as text.
    """

    field: str
    index: int | None
    value: str

    def __init__(self, message: str, field: str = "", index: int | None = None, value: str = "") -> None:
        super().__init__(message)
        self.field = field
        self.index = index
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.args[0], self.field, self.index, self.value))


class InputError(AttmirrorError, ValueError):
    """What the caller gave cannot be used."""


class PaddingWarning(UserWarning):
    """Sequences end in rows of zeros, and no `lengths` say whether these are tokens or padding."""


class EnvironmentFailure(AttmirrorError, OSError):
    """The machine failed: a full disk, a file that cannot be read, a folder in use by another process."""

    def __new__(cls, message: str, field: str = "", index: int | None = None, value: str = "") -> EnvironmentFailure:
        # OSError reads more than one argument as (errno, strerror, file).
        return OSError.__new__(cls, message)
