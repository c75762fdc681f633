"""Shows that a twin can fail: changes one weight of a case and expects exit code 1. notices.py TWIN FOLDER CASE WEIGHT"""

import os
import shutil
import subprocess
import sys

import safetensors_file

twin, folder, case, weight = sys.argv[1:]
changed = case + "_changed"
for part in ("batch", "results"):
    shutil.copyfile(*(os.path.join(folder, f"{name}.{part}.safetensors") for name in (case, changed)))
tensors, metadata = safetensors_file.load(os.path.join(folder, case + ".weights.safetensors"))
tensors[weight].view(-1)[0] += 0.01
safetensors_file.save(os.path.join(folder, changed + ".weights.safetensors"), tensors, metadata)
done = subprocess.run([sys.executable, twin, folder, changed], stdout=subprocess.PIPE, universal_newlines=True)
print(done.stdout, end="")
expected = f"{changed}: gradient of {weight} differs by"
if done.returncode != 1 or expected not in done.stdout:
    sys.exit(f"a changed weight went unnoticed: exit code {done.returncode}, expected 1 and '{expected}'")
