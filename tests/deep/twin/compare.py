"""Compares what our code wrote with what a twin computes: loss, logits and the gradient of every weight.

A case NAME is three files that attmirror_twin_check writes: NAME.weights, NAME.batch and NAME.results (.safetensors)."""

import os
import sys

import torch

import safetensors_file

TOLERANCE = 1e-5  # relative, of the norm of each tensor


def relative_difference(ours, theirs):
    ours, theirs = ours.detach().double(), theirs.detach().double()
    if ours.shape != theirs.shape:
        return float("inf")
    size = theirs.norm()
    return ((ours - theirs).norm() / size).item() if size > 0 else ours.norm().item()


def check_case(folder, case, build, run):
    """build(metadata, weights) -> (module, {name in the file: parameter of the module}); run(module, batch) -> (loss,
    logits)."""
    weights, metadata = safetensors_file.load(os.path.join(folder, case + ".weights.safetensors"))
    batch, _ = safetensors_file.load(os.path.join(folder, case + ".batch.safetensors"))
    ours, _ = safetensors_file.load(os.path.join(folder, case + ".results.safetensors"))
    module, parameters = build({key.split(".", 1)[1]: text for key, text in metadata.items()}, weights)
    loss, logits = run(module, batch)
    loss.backward()
    theirs = {"loss": loss.reshape(1), "logits": logits}
    for name, parameter in parameters.items():
        theirs["gradient of " + name] = parameter.grad.reshape(weights[name].shape)
    ok, worst = set(ours) == set(theirs), ("nothing", 0.0)
    if not ok:
        print(f"{case}: tensors differ: {sorted(set(ours) ^ set(theirs))}")
    for name in sorted(set(ours) & set(theirs)):
        difference = relative_difference(ours[name], theirs[name])
        worst = max(worst, (name, difference), key=lambda entry: entry[1])
        if not difference <= TOLERANCE:  # NaN is no agreement
            print(f"{case}: {name} differs by {difference:.3g}: expected at most {TOLERANCE}")
            ok = False
    print(f"{case}: {len(theirs)} tensors, largest difference {worst[1]:.2g} ({worst[0]})")
    return ok


def main(build, run):
    torch.set_num_threads(2)
    folder, cases = sys.argv[1], sys.argv[2:]
    results = [check_case(folder, case, build, run) for case in cases]  # all, so that all are shown
    sys.exit(0 if results and all(results) else 1)
