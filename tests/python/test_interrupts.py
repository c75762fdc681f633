"""Ctrl-C: every long call ends at once, and what it wrote is in order."""

import subprocess
import sys
import textwrap
import threading
import time

import pytest

import attmirror as am
from conftest import bits

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
import attmirror as am
data = am.generate(seed=1)
rule = am.MirrorDescent(p=1.75, lr=0.1, normalized=True)
def press(after=0.3):
    def run():
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=run, daemon=True).start()
"""


def in_another_process(text, *arguments):
    done = subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(text), *map(str, arguments)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


CALLS = {
    "descend": "am.descend(data, rule, steps=10**12, record='none')",
    "descend_callback": "am.descend(data, rule, steps=10**12, callback=lambda record: None)",
    "descend_many": "am.descend_many([(data, rule)] * 3, steps=10**12, record='none', threads=2)",
    "objective": "am.Objective(lambda w: (float(w @ w), 2 * w), {'w': 3}).descend(am.GradientDescent(lr=1e-9), steps=10**12, record='none')",
    "mirror_flow": "am.mirror_flow(am.generate(samples=200, tokens=50, dim=20), p=3.9, times=[1e280], tol=1e-12)",
    "path": "am.path(am.generate(samples=100, tokens=50, dim=20), 1.75, starts=2000)",
    "max_margin": "am.max_margin(am.generate(samples=400, tokens=64, dim=64), norm='nuclear', tol=1e-12)",
    "max_margin_many": "am.max_margin_many([am.generate(samples=50, tokens=30, dim=30)] * 500, norm='nuclear', threads=2)",
    "sweep": "am.sweep({'data': {}, 'train': {'steps': 10**8}, 'grid': {'seed': '1:50'}}, threads=2)",
    "next_token": "am.next_token(vocab=30, steps=10**12, ov_steps=10, record='none')",
    "reproduce": "am.reproduce('which-margin', threads=2)",
}


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_it(name):
    """Each would take minutes or forever. How soon it ends is measured by bench/python_overhead.py."""
    said = in_another_process(f"""
        press()
        try:
            {CALLS[name]}
        except KeyboardInterrupt:
            print("interrupted")
        else:
            print("it ended by itself")
    """)
    assert said == ["interrupted"]


def test_the_checkpoint_is_kept(tmp_path):
    step, = in_another_process("""
        press()
        try:
            am.descend(data, rule, steps=10**12, out=sys.argv[1])
        except KeyboardInterrupt:
            print(am.load_run(sys.argv[1]).steps)
    """, tmp_path / "run")
    assert int(step) > 0
    stopped = am.load_run(tmp_path / "run")
    assert stopped.status == "interrupted"
    more = int(step) + 1000
    resumed = am.descend(am.generate(seed=1), stopped.optimizer, steps=more, out=tmp_path / "run", resume=True)
    assert resumed.steps == more
    if more < 3_000_000:
        assert bits(resumed.W, am.descend(am.generate(seed=1), stopped.optimizer, steps=more).W)


def test_a_handler_of_ones_own_is_called():
    said = in_another_process("""
        signal.signal(signal.SIGINT, lambda *_: print("heard"))
        press()
        run = am.descend(data, rule, steps=10**12, record="none")
        print(run.status)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        press()
        try:
            time.sleep(20)
        except KeyboardInterrupt:
            print("as before")
    """)
    assert said == ["heard", "interrupted", "as", "before"]


def test_ignored_signals_stay_ignored():
    said = in_another_process("""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        press()
        print(am.descend(data, rule, steps=10**12, max_seconds=1.0, record="none").status)
    """)
    assert said == ["out_of_time"]


def test_an_interrupt_within_a_callback():
    said = in_another_process("""
        press()
        try:
            am.descend(data, rule, steps=10**12, callback=lambda record: time.sleep(1000))
        except KeyboardInterrupt:
            print("out of the callback")
    """)
    assert said == ["out", "of", "the", "callback"]


def test_the_lock_is_released():
    """Another thread runs while a training does."""
    rule = am.GradientDescent(lr=0.1)
    data = am.generate(seed=1)
    counted = 0
    done = threading.Event()
    thread = threading.Thread(target=lambda: (am.descend(data, rule, steps=10**12, max_seconds=0.5, record="none"),
                                              done.set()))
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    assert counted > 10


def test_trainings_in_threads_have_the_same_bits(data, rule):
    expected = am.descend(data, rule, steps=500).W
    found = []
    threads = [threading.Thread(target=lambda: found.append(am.descend(data, rule, steps=500).W)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(bits(W, expected) for W in found)
