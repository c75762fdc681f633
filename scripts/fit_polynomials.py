#!/usr/bin/env python3
"""Prints the minimax polynomials of src/base/vector_math_inline.hpp and the tables and polynomials of
src/base/float_power_tables.hpp (needs mpmath; not needed to build or test).

For each function g on [a, b] with weight w, the Remez algorithm finds the polynomial p of a given degree that
minimises max |w (g - p)|; with the weights below that is the relative error of the final result. Coefficients are
printed as the doubles that the C++ source has.
"""
from struct import pack, unpack

from mpmath import atanh, cbrt, cos, exp, log, lu_solve, matrix, mp, mpf, pi, sqrt

mp.prec = 400


def evaluate(coefficients, x):
    value = mpf(0)
    for c in reversed(coefficients):
        value = value * x + c
    return value


def remez(g, w, a, b, degree):
    """The coefficients of the minimax polynomial, lowest first, and its weighted error."""
    n = degree + 2
    points = [(a + b) / 2 - (b - a) / 2 * cos(pi * (i + mpf(1) / 2) / n) for i in range(n)]
    for _ in range(30):
        # The polynomial whose weighted error alternates, with equal size, on the points ...
        system, values = matrix(n, n), matrix(n, 1)
        for i, x in enumerate(points):
            for j in range(degree + 1):
                system[i, j] = x**j
            system[i, n - 1] = (-1) ** i / w(x)
            values[i] = g(x)
        solution = lu_solve(system, values)
        coefficients, level = [solution[j] for j in range(degree + 1)], abs(solution[n - 1])
        # ... and the largest error between any two of its zeros, as the next points.
        grid = [(a + b) / 2 - (b - a) / 2 * cos(pi * i / (60 * n)) for i in range(60 * n + 1)]
        peaks = []
        for x in grid:
            e = w(x) * (g(x) - evaluate(coefficients, x))
            if not peaks or (e >= 0) != peaks[-1][2]:
                peaks.append((x, abs(e), e >= 0))
            elif abs(e) > peaks[-1][1]:
                peaks[-1] = (x, abs(e), e >= 0)
        while len(peaks) > n:
            peaks.pop(0 if peaks[0][1] < peaks[-1][1] else -1)
        points, largest = [p[0] for p in peaks], max(p[1] for p in peaks)
        if largest / level < mpf("1.0001"):
            break
    return coefficients, largest


def show(title, coefficients, error):
    print(f"{title}: error 2^{float(log(error, 2)):.2f}")
    for i, c in enumerate(coefficients):
        print(f"  c{i} = {float.hex(float(c))}")


# A little more than half an octave on both sides, for arguments that rounding puts just outside.
r_max = log(mpf(2)) / 2 * mpf("1.0005")
s_max = (sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1) * mpf("1.0005")
small = mpf("1e-15")  # below, functions are replaced by the start of their series

show("exp: (e^r - 1 - r) / r^2",
     *remez(lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > small else mpf(1) / 2 + r / 6,
            lambda r: r * r * exp(-r), -r_max, r_max * mpf("1.003"), 9))


def log_rest(z):
    s = sqrt(z)
    return (2 * atanh(s) - 2 * s) / (s * z) if z > small else mpf(2) / 3 + mpf(2) / 5 * z


show("log: (2 atanh(s) - 2 s) / s^3 in z = s^2", *remez(log_rest, lambda z: z / 2, mpf(0), s_max**2, 6))


def log_pair_rest(z):
    t = sqrt(z)
    return ((2 * atanh(t / 2) - t) / (t * z) - mpf(1) / 12) / z if z > small else mpf(1) / 80 + z / 448


show("pow: (2 atanh(t/2) - t - t^3/12) / t^5 in z = t^2",
     *remez(log_pair_rest, lambda z: z * z, mpf(0), 4 * s_max**2, 7))
show("cbrt: m^(-1/3)", *remez(lambda m: 1 / cbrt(m), cbrt, mpf(1), mpf(2), 3))


# Powers of floats. The octave of mantissas is cut in 32 parts; each has a float r near the inverse of its middle whose
# logarithm is, to about 2^-32, a multiple of 2^-16: the nearest to one among a thousand.
def reciprocal(j):
    middle = 1 + (mpf(j) + mpf(1) / 2) / 32
    candidates = []
    for k in range(int(log(middle * mpf("0.994"), 2) * 65536), int(log(middle * mpf("1.006"), 2) * 65536) + 1):
        r = mpf(unpack("f", pack("f", float(mpf(2) ** (-mpf(k) / 65536))))[0])
        candidates.append((abs(-log(r, 2) - mpf(k) / 65536), r, mpf(k) / 65536))
    return min(candidates)


mp.prec = 120
table = [reciprocal(j) for j in range(32)]
print(f"log2 of floats: table, error 2^{float(log(max(e for e, _, _ in table), 2)):.2f}")
print("  inverses", ", ".join(float.hex(float(r)) for _, r, _ in table))
print("  logarithms", ", ".join(float.hex(float(t)) for _, _, t in table))
f_min = min((1 + mpf(j) / 32) * table[j][1] - 1 for j in range(32))
f_max = max((1 + (mpf(j) + 1) / 32) * table[j][1] - 1 for j in range(32))
print(f"  f from {float(f_min)} to {float(f_max)}")
mp.prec = 400
for degree in (3, 2):
    show(f"log2 of floats: log2(1 + f) / f, degree {degree}",
         *remez(lambda f: log(1 + f, 2) / f if abs(f) > small else (1 - f / 2) / log(mpf(2)),
                lambda f: abs(f) + mpf("1e-9"), f_min, f_max, degree))
show("exp2 of floats: (2^h - 1) / h",
     *remez(lambda h: (mpf(2)**h - 1) / h if abs(h) > small else log(mpf(2)), lambda h: abs(h) + mpf("1e-9"),
            -mpf("1.003") / 32, mpf("1.003") / 32, 2))
sixteenths = [mpf(2) ** (mpf(k) / 16) for k in range(16)]
rounded = [mpf(unpack("f", pack("f", float(x)))[0]) for x in sixteenths]
print("exp2 of floats: table", ", ".join(float.hex(float(r)) for r in rounded))
print("  and rest", ", ".join(float.hex(unpack("f", pack("f", float(x - r)))[0]) for x, r in zip(sixteenths, rounded)))
