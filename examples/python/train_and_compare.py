"""Mirror descent with p = 1.1 turns towards the ℓ1.1 max-margin solution: the divergence falls to about 1e-4.

    python examples/python/train_and_compare.py [FIGURE.pdf]
"""

import sys

import attmirror as am

data = am.generate(samples=6, tokens=8, dim=10, seed=1)
run = am.descend(data, am.MirrorDescent(p=1.1, lr=0.1, normalized=True), steps=2000)
svm = am.max_margin(data, run.selected_tokens, norm=1.1)

print(run)
print(svm)
near = am.compare(run, svm)
print(f"divergence {near.directional_bregman:.2g}, correlation {near.correlation:.6f}, "
      f"share of the largest margin {near.margin_ratio:.4f}")
print(f"verified again from the raw data: {am.verify(svm).certified}, gap {svm.gap:.1e}")

if len(sys.argv) > 1:
    run.plot(svm).savefig(sys.argv[1])
