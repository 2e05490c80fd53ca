#!/usr/bin/env python3
"""The independent computation behind gps-ekf's input.bin and expected.bin.

It shares neither code nor algebra with ekf.h: 50-digit decimals instead of doubles, dense matrices for
the prediction, and for the correction the information form of the filter

    P+ = (P^-1 + H' R^-1 H)^-1        x+ = x + P+ H' R^-1 (z - h(x))

with inverses by Gauss-Jordan elimination, where ekf.h factorises the innovation covariance.

    ./reference.py                 write input.bin and expected.bin (always the same bytes)
    ./reference.py --check CMD...  feed CMD the whole drive, each reply into the next request, and
                                   compare every reply with the reference within 1e-9

Standard library only.
"""

import struct
import subprocess
import sys
from decimal import Decimal as D, getcontext
from pathlib import Path

getcontext().prec = 50

TOLERANCE = 1e-9  # relative ...
FLOOR = 10.0  # ... for numbers above this; below it 1e-8 m or m/s: a pseudorange's last bit is 4e-9 m
EPOCHS = 30  # of the drive
INPUT_EPOCH = 12  # the one that input.bin shows: the filter has settled
ACCELERATION_NOISE, BIAS_NOISE, DRIFT_NOISE, RANGE_NOISE = D(36), D(36), D("0.01"), D(36)


# ---- matrices of decimals, lists of rows -----------------------------------------------------------

def identity(n):
    return [[D(i == j) for j in range(n)] for i in range(n)]


def transpose(a):
    return [list(row) for row in zip(*a)]


def multiply(a, b):
    columns = transpose(b)
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def add(a, b):
    return [[x + y for x, y in zip(r, s)] for r, s in zip(a, b)]


def inverse(a):
    """By Gauss-Jordan elimination with row pivoting."""
    n = len(a)
    rows = [list(row) + unit for row, unit in zip(a, identity(n))]
    for column in range(n):
        pivot = max(range(column, n), key=lambda r: abs(rows[r][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = rows[column][column]
        rows[column] = [value / scale for value in rows[column]]
        for r in range(n):
            if r != column and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [v - factor * p for v, p in zip(rows[r], rows[column])]
    return [row[n:] for row in rows]


# ---- the filter ------------------------------------------------------------------------------------

def step(x, p, dt, satellites):
    """One prediction and correction; satellites are (position, pseudorange)."""
    f, q = identity(8), [[D(0)] * 8 for _ in range(8)]
    for i in range(0, 8, 2):
        noise = DRIFT_NOISE if i == 6 else ACCELERATION_NOISE
        f[i][i + 1] = dt
        q[i][i], q[i][i + 1] = noise * dt**3 / 3, noise * dt**2 / 2
        q[i + 1][i], q[i + 1][i + 1] = noise * dt**2 / 2, noise * dt
    q[6][6] += BIAS_NOISE * dt
    x = [row[0] for row in multiply(f, [[v] for v in x])]
    p = add(multiply(multiply(f, p), transpose(f)), q)

    h, y = [], []
    for position, pseudorange in satellites:
        difference = [x[2 * axis] - position[axis] for axis in range(3)]
        distance = sum(d * d for d in difference).sqrt()
        h.append([v for d in difference for v in (d / distance, D(0))] + [D(1), D(0)])
        y.append([pseudorange - distance - x[6]])
    weighted = [[v / RANGE_NOISE for v in row] for row in transpose(h)]
    p = inverse(add(inverse(p), multiply(weighted, h)))
    gain = multiply(p, weighted)
    return [v + c[0] for v, c in zip(x, multiply(gain, y))], p


# ---- a drive: a car through Prague under four satellites --------------------------------------------

def noise(seed=0x5EED):
    """Roughly normal numbers, mean 0 and variance 1: twelve uniform ones of a linear generator."""
    value = seed
    while True:
        total = D(-6)
        for _ in range(12):
            value = (value * 6364136223846793005 + 1442695040888963407) % 2**64
            total += D(value) / D(2**64)
        yield total


def measurements():
    """What the receiver sees each second, rounded to doubles as a request carries it."""
    random = noise()
    position = [D(3970000), D(1020000), D(4870000)]
    velocity = [D(-9), D(12), D("4.5")]
    bias, drift = D(85000), D(31)
    # Position and velocity of each satellite at the start: one near the zenith, three low around.
    orbits = [
        ([19650000, 3560000, 17510000], [150, -3820, 610]),
        ([-6880000, 11140000, 23110000], [3370, 1910, 80]),
        ([22140000, 14650000, 890000], [1280, -2120, 2970]),
        ([11220000, -20220000, 13060000], [-780, 1740, 3370]),
    ]
    for epoch in range(1, EPOCHS + 1):
        velocity = [v + next(random) for v in velocity]
        position = [p + v for p, v in zip(position, velocity)]
        drift += next(random) / 10
        bias += drift
        satellites = []
        for start, speed in orbits:
            there = [exact(D(s) + D(v) * epoch) for s, v in zip(start, speed)]
            distance = sum((a - b) ** 2 for a, b in zip(position, there)).sqrt()
            satellites.append((there, exact(distance + bias + 5 * next(random))))
        yield D(1), satellites


def first_state():
    """Somewhere in the right town, nothing known about motion and clock drift."""
    x = [D(3970050), D(0), D(1019960), D(0), D(4870020), D(0), D(85010), D(0)]
    p = [[v * 10000 for v in row] for row in identity(8)]
    return x, p


def exact(number):
    """The decimal that the nearest double stands for: what both computations are given."""
    return D(float(number))


# ---- bodies and replies ------------------------------------------------------------------------------

def state_bytes(x, p):
    return struct.pack("<72d", *map(float, x), *(float(v) for row in p for v in row))


def body(state, dt, satellites):
    numbers = [float(v) for position, z in satellites for v in (*position, z)]
    return state + struct.pack("<17d", float(dt), *numbers)


def parse_state(data):
    """The decimals that the doubles of a reply stand for."""
    numbers = [D(v) for v in struct.unpack("<72d", data)]
    return numbers[:8], [numbers[8 + 8 * i : 16 + 8 * i] for i in range(8)]


def deviation(actual, expected):
    """The largest difference, relative to the number or to FLOOR, whichever is larger."""
    pairs = zip(struct.unpack("<72d", actual), struct.unpack("<72d", expected))
    return max(abs(a - e) / max(FLOOR, abs(e)) for a, e in pairs)


def write_files(folder):
    state = state_bytes(*first_state())
    for epoch, (dt, satellites) in enumerate(measurements(), 1):
        expected = state_bytes(*step(*parse_state(state), dt, satellites))
        if epoch == INPUT_EPOCH:
            (folder / "input.bin").write_bytes(body(state, dt, satellites))
            (folder / "expected.bin").write_bytes(expected)
            return
        state = expected


def check(command):
    worst, state = 0.0, state_bytes(*first_state())
    for epoch, (dt, satellites) in enumerate(measurements(), 1):
        expected = state_bytes(*step(*parse_state(state), dt, satellites))
        request = body(state, dt, satellites)
        run = subprocess.run(command, input=request, stdout=subprocess.PIPE, check=False)
        if run.returncode != 0 or len(run.stdout) != len(expected):
            sys.exit(f"epoch {epoch}: exit status {run.returncode}, {len(run.stdout)} bytes of reply")
        worst = max(worst, deviation(run.stdout, expected))
        if not worst <= TOLERANCE:
            sys.exit(f"epoch {epoch}: the reply is off by {worst:.3g}, allowed are {TOLERANCE:g}")
        state = run.stdout
    print(f"{EPOCHS} epochs, largest deviation {worst:.3g}, allowed {TOLERANCE:g}")


def main():
    if len(sys.argv) == 1:
        write_files(Path(__file__).resolve().parent)
    elif sys.argv[1] == "--check" and len(sys.argv) > 2:
        check(sys.argv[2:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
