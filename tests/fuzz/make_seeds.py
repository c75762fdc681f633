#!/usr/bin/env python3
"""make_seeds.py ATTMIRROR: writes the seeds of the fuzzers of results, arrays and trainings into tests/fuzz/corpus.

Runs short commands of attmirror in a temporary folder and turns what they leave into inputs as result_checks.hpp and
array_checks.hpp describe them. Findings that were added by hand are left alone.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
TRAINING = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "files-0.1.0" / "deep"


def write(kind, name, content):
    """A seed, without the folders of this machine."""
    (CORPUS / kind).mkdir(parents=True, exist_ok=True)
    (CORPUS / kind / name).write_bytes(re.sub(rb'"/[^"]*/([^"/]*)"', rb'"/data/\1"', content))


def array_bytes(name, array):
    """One array as array_checks.hpp reads it: small whole numbers stay what they are, others become 1/2."""
    if array.dtype == numpy.uint8:  # a text
        return name.encode() + b"\0x\1" + bytes([array.size]) + array.tobytes()
    if array.ndim > 3 or max(array.shape, default=0) > 255 or array.size > 1000:
        return b""
    values = bytes(int(value) + 100 if -100 <= value < 146 and value == int(value) else 252 for value in array.reshape(-1))
    return name.encode() + b"\0" + (b"i" if array.dtype.kind in "iu" else b"n") + bytes([array.ndim, *array.shape]) + values


def arrays_seed(kind, path):
    """A whole archive."""
    with numpy.load(path) as archive:
        return kind + b"".join(array_bytes(name, archive[name]) for name in sorted(archive.files))


def main():
    attmirror = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)

        def run(*words):
            subprocess.run([attmirror, *words, "--quiet"], cwd=place, check=True)

        run("generate", "--samples", "2", "--tokens", "3", "--dim", "3", "--seed", "1", "-o", "data.npz")
        run("generate", "--samples", "2", "--tokens", "3", "--dim", "3", "--queries", "2", "-o", "queries.npz")
        run("train", "data.npz", "--p", "3", "--normalized", "--steps", "4", "--record", "every:2", "-o", "md")
        run("train", "data.npz", "--params", "KQ", "--optimizer", "muon", "--steps", "2", "--record", "every:1", "-o", "muon")
        run("train", "queries.npz", "--optimizer", "adam", "--steps", "2", "-o", "adam")
        run("margin", "data.npz", "--norm", "3", "-o", "svm.npz")
        run("margin", "data.npz", "--norm", "nuclear", "-o", "nuclear.npz")
        run("path", "data.npz", "--norm", "2", "--radii", "1:10:2", "-o", "path")
        run("next-token", "--vocab", "4", "--sentences", "6", "--steps", "2", "--ov-steps", "2", "-o", "next")
        run("reproduce", "p2-lemma", "--quick", "-o", "out")
        for name in ("md", "muon", "adam"):
            write("results", f"config_{name}.txt", b"c" + (place / name / "config.json").read_bytes())
            write("results", f"result_{name}.txt", b"r" + (place / name / "result.json").read_bytes())
            write("arrays", f"checkpoint_{name}.bin", arrays_seed(b"k", place / name / "checkpoint.npz"))
        write("results", "config_next_token.txt", b"c" + (place / "next/W_kq/config.json").read_bytes())
        write("results", "kind_next_token.txt", b"k" + (place / "next/config.json").read_bytes())
        write("results", "config_path.txt", b"p" + (place / "path/config.json").read_bytes())
        for result in (place / "out/results").glob("*.json"):
            write("results", f"experiment_{result.stem.replace('.', '_')}.txt", b"e" + short_report(result))
        write("arrays", "final.bin", arrays_seed(b"f", place / "md/final.npz"))
        write("arrays", "trace.bin", arrays_seed(b"t", place / "md/trace.npz"))
        write("arrays", "path.bin", arrays_seed(b"p", place / "path/path.npz"))
        write("arrays", "checkpoint_next_token.bin", arrays_seed(b"k", place / "next/W_kq/checkpoint.npz"))
        for name in ("svm", "nuclear"):
            write("arrays", f"{name}.bin", arrays_seed(b"s", place / f"{name}.npz"))
        for name in ("data", "queries"):
            write("arrays", f"{name}.bin", arrays_seed(b"d", place / f"{name}.npz"))
    write("results", "training_metrics.txt", b'm{"trial":0,"epoch":1,"step":3,"train_loss":0.5,"K":{"mean":0.1}}\n')
    write("results", "training_results.txt", b's{"status":"completed","trials":[{"trial":0,"status":"completed"}]}')
    write("results", "training_config.txt", b't{"format":"attmirror deep training","optimizer":{"name":"md","p":1.1}}')
    write("results", "steps_not_whole.txt", b'r{"status":"completed","steps":1e300,"loss":null,"max_softmax":1.5,"norm":-1,"seconds":0,"selected":[1.5],"optimal":null}')
    write("results", "path_version_text.txt", b'p{"format":"attmirror path","format_version":"one"}')
    write("database", "header.txt", b'h {"name":"n","description":"","file":"","record":"final","axes":["seed"],"settings":[{"name":"seed","type":"integer"}],"metrics":[]}')
    for name, content in {"header_no_json": b"h {", "shape": b"s [3]", "shape_negative": b"s [-3]", "shape_huge": b"s [4611686018427387904, 4]",
                          "shape_nested": b"s [[3]]", "shape_missing": b"sn", "shape_real": b"s [3.5]", "data_short": b"db1234567",
                          "data_missing": b"dn", "key_missing": b"kn", "key_number": b"ki1", "run_text": b"r seven", "metric_text": b"m text",
                          "metric_infinite": b"mb\x7f\xf0", "setting_real": b"g 1.5", "status_lines": b"t two\nlines", "name_twice": b"a loss",
                          "config_no_json": b"c }", "page_size": b"@\0\x10\1", "schema_page": b"@\0\x64\0\0\x65\xff"}.items():
        write("database", f"{name}.txt", content)
    for file in TRAINING.glob("*.toml"):
        write("trainer", file.name, file.read_bytes())


def short_report(path):
    """The result of an experiment with few findings, figures and points: a fuzzer changes what is short more often."""
    report = json.loads(path.read_text())
    for part in ("findings", "tables", "figures", "configuration", "remarks"):
        report[part] = report[part][:1]
    for figure in report["figures"]:
        figure["series"] = figure["series"][:1]
        for series in figure["series"]:
            for axis in ("x", "y", "low", "high", "labels"):
                series[axis] = series[axis][:2]
    return json.dumps(report, ensure_ascii=False).encode()


main()
