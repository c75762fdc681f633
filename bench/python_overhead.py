#!/usr/bin/env python3
"""What Python costs compared with C++: the same calls from both, and how soon Ctrl-C ends them.

    python bench/python_overhead.py

Needs the installed package. Both sides take turns, and only the fastest twentieth of the calls counts: what a busy
machine adds to the others is not Python's fault.
"""

import os
import signal
import threading
import time

import attmirror as am
from attmirror import _core


def in_turns(ours, theirs, rounds=600):
    """Seconds of one call from Python and of one in C++: the fifth percentile of each."""
    python, cpp = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        ours()
        python.append(time.perf_counter() - begin)
        cpp += theirs()
    return sorted(python)[rounds // 20], sorted(cpp)[rounds // 20]


def show(what, python, cpp, limit):
    extra = 1e6 * (python - cpp)
    print(f"{what:<44} Python {1e6 * python:10.1f} us   C++ {1e6 * cpp:10.1f} us   over C++ {extra:7.1f} us   ({limit})")


def stop_time(call):
    """Seconds from SIGINT to the KeyboardInterrupt."""
    pressed = []

    def press():
        time.sleep(0.5)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    try:
        call()
    except KeyboardInterrupt:
        return time.monotonic() - pressed[0]
    raise RuntimeError("it ended by itself")


def main():
    data = am.generate(samples=6, tokens=8, dim=10, seed=1)
    rule = am.MirrorDescent(p=1.75, lr=0.1, normalized=True)
    tokens = data.optimal_tokens
    print(am.version_report())
    for steps in (0, 1500):
        python, cpp = in_turns(lambda: am.descend(data, rule, steps=steps),
                               lambda: _core.time_descend(data._handle, rule._handle, steps, 1))
        show(f"descend, n = 6, T = 8, d = 10, {steps} steps", python, cpp, "at most 50 us")
    for norm in (2.0, 1.75):
        python, cpp = in_turns(lambda: am.max_margin(data, tokens, norm),
                               lambda: _core.time_max_margin(data._handle, tokens, norm, 1))
        show(f"max_margin, norm {norm:g}", python, cpp, "at most 20 us")
    sets = [am.generate(seed=seed) for seed in range(1, 10_001)]
    handles = [one._handle for one in sets]
    for threads in (1, 0):
        python, cpp = [], []
        for _ in range(3):
            begin = time.perf_counter()
            am.max_margin_many(sets, norm=1.75, threads=threads)
            python.append(time.perf_counter() - begin)
            cpp.append(_core.time_max_margins(handles, 1.75, threads))
        ratio = min(python) / min(cpp)
        print(f"max_margin_many of 10,000, {threads or 'all'} threads{'':<12} Python {min(python):.3f} s   C++ {min(cpp):.3f} s   "
              f"{100 * (ratio - 1):+.1f} %   (at most 10 %)")
    for name, call in {
        "descend": lambda: am.descend(data, rule, steps=10**12, record="none"),
        "sweep": lambda: am.sweep({"data": {}, "train": {"steps": 10**8}, "grid": {"seed": "1:50"}}),
        "max_margin, 80 x 20 tokens, dimension 30, nuclear": lambda: [
            am.max_margin(am.generate(samples=80, tokens=20, dim=30), norm="nuclear", tol=1e-12) for _ in range(100)],
        "max_margin, 400 x 64 tokens, dimension 64, nuclear": lambda: am.max_margin(
            am.generate(samples=400, tokens=64, dim=64), norm="nuclear", tol=1e-12),
    }.items():
        print(f"Ctrl-C ends {name}: {1e3 * stop_time(call):.1f} ms   (at most 100 ms)")


if __name__ == "__main__":
    main()
