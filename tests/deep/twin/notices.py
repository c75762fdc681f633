"""Shows that the twins can fail: changes one weight of a case and expects to be told. notices.py FOLDER"""

import contextlib
import io
import os
import shutil
import sys

import compare
import encoder_twin
import safetensors_file
import vit_twin

folder = sys.argv[1]
for twin, case, weight in ((encoder_twin, "encoder_small", "block1_up"), (vit_twin, "vit_small", "block0_output")):
    changed = case + "_changed"
    for part in ("batch", "results"):
        shutil.copyfile(*(os.path.join(folder, f"{name}.{part}.safetensors") for name in (case, changed)))
    tensors, metadata = safetensors_file.load(os.path.join(folder, case + ".weights.safetensors"))
    tensors[weight].view(-1)[0] += 0.01
    safetensors_file.save(os.path.join(folder, changed + ".weights.safetensors"), tensors, metadata)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        agrees = compare.check_case(folder, changed, twin.build, twin.run)
    expected = f"{changed}: gradient of {weight} differs by"
    if agrees or expected not in said.getvalue():
        sys.exit(f"a changed weight went unnoticed: expected '{expected}'")
    print(next(line for line in said.getvalue().splitlines() if line.startswith(expected)))
