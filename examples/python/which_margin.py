"""Each optimizer maximizes the margin in its own norm: the largest entry of a row is where theory says.

    python examples/python/which_margin.py [FIGURE.pdf]
"""

import sys

import attmirror as am

datasets = [am.generate(seed=seed) for seed in range(101, 104)]
table = am.which_margin(datasets, {
    "gradient descent": (am.GradientDescent(lr=0.1, normalized=True), 5000),
    "ℓ1.1 mirror descent": (am.MirrorDescent(p=1.1, lr=0.1, normalized=True), 5000),
    "ℓ3 mirror descent": (am.MirrorDescent(p=3, lr=1, normalized=True), 5000),
    "sign descent": (am.SignDescent(lr=0.1), 5000),
    "spectral descent": (am.SpectralDescent(lr=0.1), 3000),
})
print(table)
for row, agrees in zip(table.rows, table.agrees):
    print(f"{row}: {'as theory says' if agrees else 'not where theory says'}")

if len(sys.argv) > 1:
    table.plot().savefig(sys.argv[1])
