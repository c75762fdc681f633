#!/usr/bin/env python3
"""compile_times.py [--target TARGET] [--slowest N] [-- CMAKE OPTIONS...]: where the compile time goes.

Configures a fresh build in a temporary folder (release, without a compiler cache), builds TARGET (attmirror_command) and prints
CPU seconds (user + system) per room and of the slowest units, the total, and the wall time. Compare two commits at the same time:
on a busy machine, CPU seconds are a fifth to a quarter larger than on a quiet one.

  bench/compile_times.py -- -DATTMIRROR_KERNELS=native
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

# ninja runs "LAUNCHER COMPILER ARGUMENTS": this file, with the log in the environment, is the launcher.
LOG = "ATTMIRROR_COMPILE_LOG"


def launch(command):
    """Runs a compiler and notes its CPU seconds beside the object that it makes."""
    status = subprocess.call(command)
    times = os.times()
    unit = command[command.index("-o") + 1] if "-o" in command else command[-1]
    with open(os.environ[LOG], "a") as log:
        log.write(f"{times.children_user + times.children_system:.2f} {unit}\n")
    return status


def room_of(unit):
    """The room, or "kernels SET", that an object belongs to."""
    if kernels := re.search(r"_(sse2|avx2|avx512)\.dir/", unit):
        return f"kernels {kernels[1]}"
    if batch := re.search(r"Unity/unity_([a-z]+(?:_token)?)", unit):
        return batch[1].removesuffix("_")
    if source := re.search(r"src/([a-z_]+)/", unit):
        return source[1]
    return "other"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="attmirror_command")
    parser.add_argument("--slowest", type=int, default=15)
    parser.add_argument("options", nargs="*", help="for cmake, after --")
    arguments = parser.parse_args()
    source = pathlib.Path(__file__).resolve().parents[1]
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        build, log = folder / "build", folder / "units.txt"
        log.touch()
        environment = {**os.environ, LOG: str(log), "CCACHE_DISABLE": "1"}
        configure = ["cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DATTMIRROR_TESTS=OFF",
                     "-DATTMIRROR_EXAMPLES=OFF", f"-DCMAKE_CXX_COMPILER_LAUNCHER={sys.executable};{pathlib.Path(__file__).resolve()};--launch",
                     *arguments.options]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        began = time.monotonic()
        subprocess.run(["cmake", "--build", build, "-j", str(os.cpu_count()), "--target", arguments.target], check=True,
                       env=environment, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - began
        units = [(float(line.split()[0]), line.split()[1]) for line in log.read_text().splitlines()]
    finally:
        shutil.rmtree(folder)
    seconds, count = collections.Counter(), collections.Counter()
    for cpu, unit in units:
        seconds[room_of(unit)] += cpu
        count[room_of(unit)] += 1
    print("CPU seconds  units  room")
    for room, cpu in seconds.most_common():
        print(f"{cpu:11.1f} {count[room]:6d}  {room}")
    print(f"{sum(seconds.values()):11.1f} {len(units):6d}  in all; {wall:.0f} s on {os.cpu_count()} cores\n")
    print("the slowest units")
    for cpu, unit in sorted(units, reverse=True)[:arguments.slowest]:
        print(f"{cpu:11.1f}  {re.sub(r'CMakeFiles/|[.]dir/|Unity/unity_|_cxx[.]cxx[.]o|[.]o$', lambda m: '/' if m[0] == '.dir/' else '', unit)}")


if len(sys.argv) > 2 and sys.argv[1] == "--launch":
    sys.exit(launch(sys.argv[2:]))
main()
