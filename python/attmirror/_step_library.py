"""The shared libraries that make the steps of `attmirror.torch`, loaded by ctypes.

They have a C interface (python/step/attmirror_step.h) and know neither Python nor PyTorch, so one build serves every
version of both. They are looked for in the folder that the environment variable ATTMIRROR_STEP_LIBRARIES names, if it is
set, and otherwise beside this file.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._errors import EnvironmentFailure, InputError

VERSION = 1  # ATTMIRROR_STEP_VERSION
FOLDER_VARIABLE = "ATTMIRROR_STEP_LIBRARIES"
MESSAGE_SIZE = 512  # ATTMIRROR_MESSAGE_SIZE
FIELDS = 5  # numbers of a tensor in an array of tensors: weights, gradient, master, momentum, size

ELEMENTS = ("float32", "bfloat16", "float16", "float64")
RULES = ("mirror", "steepest", "sign")


class Options(ctypes.Structure):
    """`struct attmirror_options`."""

    _fields_ = (
        [(name, ctypes.c_double) for name in ("p", "rate", "momentum", "weight_decay", "gradient_scale")]
        + [
            (name, ctypes.c_int32)
            for name in ("element", "rule", "nesterov", "normalized", "skip_nonfinite", "maximize", "exact", "threads")
        ]
    )


class Device(ctypes.Structure):
    """`struct attmirror_device`: addresses as numbers."""

    _fields_ = [
        ("gradient_scale", ctypes.c_void_p),
        ("found_nonfinite", ctypes.c_void_p),
        ("rate", ctypes.c_void_p),
        ("norms", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("device", ctypes.c_int32),
    ]


def tensor_array(count: int) -> ctypes.Array[ctypes.c_int64]:
    """Room for `count` structs attmirror_tensor."""
    return (ctypes.c_int64 * (FIELDS * count))()


class _Library:
    """A library, its functions declared; the text of its last error is of the calling thread."""

    def __init__(self, path: Path, version_function: str) -> None:
        try:
            self.functions = ctypes.CDLL(str(path))
        except OSError as error:
            raise EnvironmentFailure(f"{path} cannot be loaded: {error}") from error
        version = getattr(self.functions, version_function)()
        if version != VERSION:
            raise EnvironmentFailure(f"{path} has version {version} of its interface: expected {VERSION}, as this package has")
        self._local = threading.local()

    def message(self) -> ctypes.Array[ctypes.c_char]:
        try:
            buffer: ctypes.Array[ctypes.c_char] = self._local.message
        except AttributeError:
            buffer = self._local.message = ctypes.create_string_buffer(MESSAGE_SIZE)
        return buffer

    def _declare(self, name: str, *types: object, result: object = ctypes.c_int32) -> None:
        function = getattr(self.functions, name)
        function.argtypes = types
        function.restype = result

    def _prepared(self, function: Any, addresses: tuple[int, ...], structs: tuple[object, ...]) -> Callable[[], None]:
        """A call of `function` with these addresses and room for a message; `structs` are kept alive by it."""
        message = ctypes.create_string_buffer(MESSAGE_SIZE)
        call = functools.partial(function, *addresses, ctypes.addressof(message))

        def step(_structs: tuple[object, ...] = structs) -> None:
            status = call()
            if status != 0:
                self.require(status, message)

        return step

    @staticmethod
    def require(status: int, message: ctypes.Array[ctypes.c_char]) -> None:
        if status == 0:
            return
        text = message.value.decode(errors="replace")
        raise InputError(text) if status == 2 else EnvironmentFailure(text)


_ADDRESS, _COUNT = ctypes.c_void_p, ctypes.c_int64


class CpuLibrary(_Library):
    def __init__(self, path: Path) -> None:
        super().__init__(path, "attmirror_step_version")
        self._declare("attmirror_step", _ADDRESS, _ADDRESS, _COUNT, _ADDRESS, _ADDRESS, _ADDRESS)
        self._declare("attmirror_measure", _ADDRESS, _ADDRESS, _COUNT, _ADDRESS, _ADDRESS)
        self._declare("attmirror_fill_masters", _ADDRESS, _ADDRESS, _COUNT, _ADDRESS)

    def step(self, options: Options, tensors: ctypes.Array[ctypes.c_int64], norms: int = 0) -> bool:
        """Whether the step was skipped, since a gradient is not finite."""
        message, skipped = self.message(), ctypes.c_int32()
        structs = (ctypes.byref(options), tensors, len(tensors) // FIELDS)
        self.require(self.functions.attmirror_step(*structs, norms, ctypes.byref(skipped), message), message)
        return skipped.value != 0

    def prepared_step(self, options: Options, tensors: ctypes.Array[ctypes.c_int64]) -> Callable[[], None]:
        """step() on these structs, again and again, by addresses that are looked up once."""
        skipped = ctypes.c_int32()
        before = (ctypes.addressof(options), ctypes.addressof(tensors), len(tensors) // FIELDS, 0)
        return self._prepared(self.functions.attmirror_step, (*before, ctypes.addressof(skipped)), (options, tensors, skipped))

    def measure(self, options: Options, tensors: ctypes.Array[ctypes.c_int64], norms: int) -> None:
        message, count = self.message(), len(tensors) // FIELDS
        self.require(self.functions.attmirror_measure(ctypes.byref(options), tensors, count, norms, message), message)

    def fill_masters(self, options: Options, tensors: ctypes.Array[ctypes.c_int64]) -> None:
        message, count = self.message(), len(tensors) // FIELDS
        self.require(self.functions.attmirror_fill_masters(ctypes.byref(options), tensors, count, message), message)


class CudaLibrary(_Library):
    def __init__(self, path: Path) -> None:
        super().__init__(path, "attmirror_cuda_step_version")
        self._declare("attmirror_cuda_workspace", _ADDRESS, _ADDRESS, _COUNT, _ADDRESS, result=ctypes.c_int64)
        self._declare("attmirror_cuda_step", _ADDRESS, _ADDRESS, _COUNT, _ADDRESS, _ADDRESS)
        self._declare("attmirror_cuda_measure", _ADDRESS, _ADDRESS, _COUNT, _ADDRESS, _ADDRESS, _ADDRESS)
        self._declare("attmirror_cuda_fill_masters", _ADDRESS, _ADDRESS, _COUNT, _ADDRESS, _ADDRESS)

    def workspace_bytes(self, options: Options, tensors: ctypes.Array[ctypes.c_int64], device: Device) -> int:
        structs = (ctypes.byref(options), tensors, len(tensors) // FIELDS, ctypes.byref(device))
        return int(self.functions.attmirror_cuda_workspace(*structs))

    def prepared_step(
        self, options: Options, tensors: ctypes.Array[ctypes.c_int64], device: Device
    ) -> Callable[[], None]:
        """A step on these structs, again and again, by addresses that are looked up once."""
        addresses = (ctypes.addressof(options), ctypes.addressof(tensors), len(tensors) // FIELDS, ctypes.addressof(device))
        return self._prepared(self.functions.attmirror_cuda_step, addresses, (options, tensors, device))

    def measure(self, options: Options, tensors: ctypes.Array[ctypes.c_int64], norms: int, device: Device) -> None:
        message, structs = self.message(), (ctypes.byref(options), tensors, len(tensors) // FIELDS, norms)
        self.require(self.functions.attmirror_cuda_measure(*structs, ctypes.byref(device), message), message)

    def fill_masters(self, options: Options, tensors: ctypes.Array[ctypes.c_int64], device: Device) -> None:
        message, structs = self.message(), (ctypes.byref(options), tensors, len(tensors) // FIELDS)
        self.require(self.functions.attmirror_cuda_fill_masters(*structs, ctypes.byref(device), message), message)


def _folder() -> Path:
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path(__file__).parent


def _found(name: str) -> Path | None:
    path = _folder() / name
    if path.is_file():
        return path
    if os.environ.get(FOLDER_VARIABLE) and not path.parent.is_dir():
        raise EnvironmentFailure(f"{FOLDER_VARIABLE} is {path.parent}: there is no such folder")
    return None


_lock = threading.Lock()
_loaded: dict[str, _Library | None] = {}


def _load(name: str, kind: type[CpuLibrary] | type[CudaLibrary]) -> _Library | None:
    with _lock:
        if name not in _loaded:
            path = _found(name)
            _loaded[name] = None if path is None else kind(path)
        return _loaded[name]


def cpu_library() -> CpuLibrary | None:
    """The kernels for the CPU, or None where they were not built."""
    library = _load("libattmirror_step.so", CpuLibrary)
    assert library is None or isinstance(library, CpuLibrary)
    return library


def cuda_library() -> CudaLibrary | None:
    """The kernels for NVIDIA GPUs, or None where they were not built."""
    library = _load("libattmirror_cuda_step.so", CudaLibrary)
    assert library is None or isinstance(library, CudaLibrary)
    return library
