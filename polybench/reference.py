#!/usr/bin/env python3
"""An independent computation of what every kernel computes, at size MINI: plain Python, no libraries.

    reference.py KERNEL DUMP      DUMP is what the kernel printed with --dump, `-` for standard input

So that a mistake that native and sandboxed code share is noticed. Written from the definitions and not from the loops of
kernels/: sums of products are rounded once (math.fsum), factorisations and solutions are put back into the equation that they
solve, paths are found by Dijkstra's algorithm, tridiagonal systems are solved as dense ones. The exit status is 1 if an element
is further off than rounding explains.
"""

import functools
import heapq
import math
import struct
import sys


def matrix(rows, columns, element):
    return [[element(i, j) for j in range(columns)] for i in range(rows)]


def vector(length, element):
    return [element(i) for i in range(length)]


def transposed(a):
    return [list(column) for column in zip(*a)]


def dot(x, y):
    return math.fsum(u * v for u, v in zip(x, y))


def times(a, b):
    columns = transposed(b)
    return [[dot(row, column) for column in columns] for row in a]


def apply(a, x):
    return [dot(row, x) for row in a]


def combined(alpha, a, beta, b):
    """alpha a + beta b of two matrices."""
    return [[alpha * x + beta * y for x, y in zip(r, s)] for r, s in zip(a, b)]


def flat(*matrices):
    return [x for m in matrices for row in m for x in row]


def solve(a, b):
    """x of a x = b, by Gauss-Jordan with pivots."""
    n = len(b)
    rows = [list(row) + [right] for row, right in zip(a, b)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(n):
            if r != i and rows[r][i] != 0.0:
                factor = rows[r][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i])]
    return [row[n] for row in rows]


def definite(n):
    """The matrix that cholesky, lu and ludcmp start from."""
    low = matrix(n, n, lambda i, j: 1.0 - j / n if j < i else float(i == j))
    return times(low, transposed(low))


# Each of these gives the elements in the order of the dump, from the initial values in kernels/*.c.


def gemm():
    ni, nj, nk = 20, 25, 30
    c = matrix(ni, nj, lambda i, j: (i * j + 1) % ni / ni)
    a = matrix(ni, nk, lambda i, k: i * (k + 1) % nk / nk)
    b = matrix(nk, nj, lambda k, j: k * (j + 2) % nj / nj)
    return flat(combined(1.5, times(a, b), 1.2, c))


def mm2():
    ni, nj, nk, nl = 16, 18, 22, 24
    a = matrix(ni, nk, lambda i, k: (i * k + 1) % ni / ni)
    b = matrix(nk, nj, lambda k, j: k * (j + 1) % nj / nj)
    c = matrix(nj, nl, lambda j, m: (j * (m + 3) + 1) % nl / nl)
    d = matrix(ni, nl, lambda i, m: i * (m + 2) % nk / nk)
    return flat(combined(1.5, times(a, times(b, c)), 1.2, d))


def mm3():
    ni, nj, nk, nl, nm = 16, 18, 20, 22, 24
    a = matrix(ni, nk, lambda i, k: (i * k + 1) % ni / (5 * ni))
    b = matrix(nk, nj, lambda k, j: (k * (j + 1) + 2) % nj / (5 * nj))
    c = matrix(nj, nm, lambda j, m: j * (m + 3) % nl / (5 * nl))
    d = matrix(nm, nl, lambda m, x: (m * (x + 2) + 2) % nk / (5 * nk))
    return flat(times(a, times(b, times(c, d))))


def centred(data):
    return [[x - math.fsum(column) / len(column) for x in column] for column in transposed(data)]


def correlation():
    m, n = 28, 32
    columns = centred(matrix(n, m, lambda i, j: i * j / m + i))
    norms = [math.sqrt(dot(x, x)) for x in columns]
    assert all(norm / math.sqrt(n) > 0.1 for norm in norms)
    return flat(matrix(m, m, lambda i, j: dot(columns[i], columns[j]) / (norms[i] * norms[j])))


def covariance():
    m, n = 28, 32
    columns = centred(matrix(n, m, lambda i, j: i * j / m))
    return flat(matrix(m, m, lambda i, j: dot(columns[i], columns[j]) / (n - 1)))


def gemver():
    n = 40
    f = vector(n, lambda i: (i + 1) / n)
    u1, u2, v1, v2 = vector(n, float), [x / 2 for x in f], [x / 4 for x in f], [x / 6 for x in f]
    a = matrix(n, n, lambda i, j: i * j % n / n + u1[i] * v1[j] + u2[i] * v2[j])
    x = [1.2 * s + t / 9 for s, t in zip(apply(transposed(a), [t / 8 for t in f]), f)]
    return [1.5 * s for s in apply(a, x)]


def gesummv():
    n = 30
    a = matrix(n, n, lambda i, j: 1.5 * ((i * j + 1) % n) / n + 1.2 * ((i * j + 2) % n) / n)
    return apply(a, vector(n, lambda i: i / n))


def symm():
    m, n = 20, 30
    c = matrix(m, n, lambda i, j: (i + j) % 100 / m)
    b = matrix(m, n, lambda i, j: (n + i - j) % 100 / m)
    a = matrix(m, m, lambda i, j: (i + j) % 100 / m)
    return flat(combined(1.5, times(a, b), 1.2, c))


def lower(n, c, updated):
    """c with its lower triangle replaced."""
    return flat(matrix(n, n, lambda i, j: updated[i][j] if j <= i else c[i][j]))


def syr2k():
    m, n = 20, 30
    a = matrix(n, m, lambda i, k: (i * k + 1) % n / n)
    b = matrix(n, m, lambda i, k: (i * k + 2) % m / m)
    c = matrix(n, n, lambda i, j: (i * j + 3) % n / m)
    ab = times(a, transposed(b))
    return lower(n, c, combined(1.5, combined(1.0, ab, 1.0, transposed(ab)), 1.2, c))


def syrk():
    m, n = 20, 30
    a = matrix(n, m, lambda i, k: (i * k + 1) % n / n)
    c = matrix(n, n, lambda i, j: (i * j + 2) % m / m)
    return lower(n, c, combined(1.5, times(a, transposed(a)), 1.2, c))


def trmm():
    m, n = 20, 30
    a = matrix(m, m, lambda i, j: (i + j) % m / m if j < i else float(i == j))
    b = matrix(m, n, lambda i, j: (n + i - j) % n / n)
    return [1.5 * x for x in flat(times(transposed(a), b))]


def atax():
    m, n = 38, 42
    a = matrix(m, n, lambda i, j: (i + j) % n / (5 * m))
    return apply(times(transposed(a), a), vector(n, lambda j: 1 + j / n))


def bicg():
    m, n = 38, 42
    a = matrix(n, m, lambda i, j: i * (j + 1) % n / n)
    return apply(transposed(a), vector(n, lambda i: i / n)) + apply(a, vector(m, lambda j: j / m))


def doitgen():
    nq, nr, np = 8, 10, 12
    c4 = matrix(np, np, lambda s, p: s * p % np / np)
    return flat(*(times(matrix(nq, np, lambda q, p: (r * q + p) % np / np), c4) for r in range(nr)))


def mvt():
    n = 40
    a = matrix(n, n, lambda i, j: i * j % n / n)
    x1 = apply(a, vector(n, lambda i: (i + 3) % n / n))
    x2 = apply(transposed(a), vector(n, lambda i: (i + 4) % n / n))
    return [i / n + x for i, x in enumerate(x1)] + [(i + 1) % n / n + x for i, x in enumerate(x2)]


def ludcmp():
    n = 40
    return solve(definite(n), vector(n, lambda i: (i + 1) / n / 2 + 4))


def trisolv():
    n = 40
    return solve(matrix(n, n, lambda i, j: (i + n - j + 1) * 2 / n if j <= i else 0.0), vector(n, float))


def durbin():
    n = 40
    r = vector(n, lambda i: float(n + 1 - i))
    toeplitz = matrix(n, n, lambda i, j: 1.0 if i == j else r[abs(i - j) - 1])
    return solve(toeplitz, [-x for x in r])


def filtered(line, e, k, b1, b2):
    """deriche along one line: both recursions as sums over the line that they are."""
    n = len(line)
    at = lambda values, i: values[i] if 0 <= i < n else 0.0
    forwards, backwards = [0.0] * n, [0.0] * n
    for i in range(n):
        forwards[i] = k * at(line, i) + k * e * (0.25 - 1) * at(line, i - 1) + b1 * at(forwards, i - 1) + b2 * at(forwards, i - 2)
    for i in reversed(range(n)):
        new = k * e * (0.25 + 1) * at(line, i + 1) - k * e * e * at(line, i + 2)
        backwards[i] = new + b1 * at(backwards, i + 1) + b2 * at(backwards, i + 2)
    return [x + y for x, y in zip(forwards, backwards)]


def deriche():
    w, h = 64, 64
    e = math.exp(-0.25)
    constants = e, (1 - e) ** 2 / (1 + 2 * 0.25 * e - math.exp(0.5)), 2**-0.25, -e * e
    image = matrix(w, h, lambda i, j: (313 * i + 991 * j) % 65536 / 65535)
    once = [filtered(row, *constants) for row in image]
    return flat(transposed([filtered(column, *constants) for column in transposed(once)]))


def floyd_warshall():
    n = 60
    far = lambda s: s % 13 == 0 or s % 7 == 0 or s % 11 == 0
    path = matrix(n, n, lambda i, j: 999 if far(i + j) else i * j % 7 + 1)

    def from_node(start):
        """Dijkstra; the empty path does not count."""
        best, queue = {}, [(path[start][j], j) for j in range(n)]
        heapq.heapify(queue)
        while queue:
            length, node = heapq.heappop(queue)
            if node not in best:
                best[node] = length
                for j in range(n):
                    heapq.heappush(queue, (length + path[node][j], j))
        return [best[j] for j in range(n)]

    return [float(x) for i in range(n) for x in from_node(i)]


def nussinov():
    n = 60
    base = lambda i: (i + 1) % 4

    @functools.cache
    def most(i, j):
        """Pairs among the bases i..j: the last stays alone, or pairs with one of those that are no neighbours of it."""
        if j <= i:
            return 0
        pairs = (most(i, k - 1) + 1 + most(k + 1, j - 1) for k in range(i, j - 1) if base(k) + base(j) == 3)
        return max(most(i, j - 1), max(pairs, default=0))

    return [float(most(i, j)) for i in range(n) for j in range(i, n)]


def adi():
    steps, n = 20, 20
    first, second = 2.0 / steps * n * n, 1.0 / steps * n * n
    inner = range(1, n - 1)

    def implicit(factor, right):
        """A line with ones at its ends: -f/2 x[j-1] + (1 + f) x[j] - f/2 x[j+1] = right[j] inside."""
        rows = [[0.0] * n for _ in range(n)]
        rows[0][0] = rows[n - 1][n - 1] = 1.0
        for j in inner:
            rows[j][j - 1 : j + 2] = [-factor / 2, 1 + factor, -factor / 2]
        return solve(rows, [1.0] + right + [1.0])

    u = matrix(n, n, lambda i, j: (i + n - j) / n)
    for _ in range(steps):
        v = [[0.0] * n for _ in range(n)]
        for i in inner:
            explicit = [second / 2 * (u[j][i - 1] + u[j][i + 1]) + (1 - second) * u[j][i] for j in inner]
            for j, x in enumerate(implicit(first, explicit)):
                v[j][i] = x
        for i in inner:
            explicit = [first / 2 * (v[i - 1][j] + v[i + 1][j]) + (1 - first) * v[i][j] for j in inner]
            u[i] = implicit(second, explicit)
    return flat(u)


def fdtd_2d():
    steps, nx, ny = 20, 20, 30
    ex = matrix(nx, ny, lambda i, j: i * (j + 1) / nx)
    ey = matrix(nx, ny, lambda i, j: i * (j + 2) / ny)
    hz = matrix(nx, ny, lambda i, j: i * (j + 3) / nx)
    for t in range(steps):
        ey = matrix(nx, ny, lambda i, j: ey[i][j] - (hz[i][j] - hz[i - 1][j]) / 2 if i > 0 else float(t))
        ex = matrix(nx, ny, lambda i, j: ex[i][j] - (hz[i][j] - hz[i][j - 1]) / 2 if j > 0 else ex[i][j])
        inside = lambda i, j: i < nx - 1 and j < ny - 1
        curl = lambda i, j: ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j] if inside(i, j) else 0.0
        hz = matrix(nx, ny, lambda i, j: hz[i][j] - 0.7 * curl(i, j))
    return flat(ex, ey, hz)


def heat_3d():
    steps, n = 20, 10
    points = [(i, j, k) for i in range(n) for j in range(n) for k in range(n)]
    a = {(i, j, k): (i + j + n - k) * 10 / n for i, j, k in points}
    for _ in range(2 * steps):
        new = dict(a)
        for p in points:
            if all(0 < x < n - 1 for x in p):
                i, j, k = p
                neighbours = [(i - 1, j, k), (i + 1, j, k), (i, j - 1, k), (i, j + 1, k), (i, j, k - 1), (i, j, k + 1)]
                new[p] = math.fsum([a[p] / 4] + [a[q] / 8 for q in neighbours])
        a = new
    return [a[p] for p in points]


def jacobi_1d():
    steps, n = 20, 30
    a, b = vector(n, lambda i: (i + 2) / n), vector(n, lambda i: (i + 3) / n)
    for _ in range(steps):
        b = [0.33333 * sum(a[i - 1 : i + 2]) if 0 < i < n - 1 else b[i] for i in range(n)]
        a = [0.33333 * sum(b[i - 1 : i + 2]) if 0 < i < n - 1 else a[i] for i in range(n)]
    return a


def jacobi_2d():
    steps, n = 20, 30
    a = matrix(n, n, lambda i, j: (i * (j + 2) + 2) / n)
    b = matrix(n, n, lambda i, j: (i * (j + 3) + 3) / n)
    inside = lambda i, j: 0 < i < n - 1 and 0 < j < n - 1
    cross = lambda m, i, j: (m[i][j] + m[i][j - 1] + m[i][j + 1] + m[i + 1][j] + m[i - 1][j]) / 5
    for _ in range(steps):
        b = matrix(n, n, lambda i, j: cross(a, i, j) if inside(i, j) else b[i][j])
        a = matrix(n, n, lambda i, j: cross(b, i, j) if inside(i, j) else a[i][j])
    return flat(a)


def seidel_2d():
    steps, n = 20, 40
    a = matrix(n, n, lambda i, j: (i * (j + 2) + 2) / n)
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i][j] = math.fsum(x for row in a[i - 1 : i + 2] for x in row[j - 1 : j + 2]) / 9
    return flat(a)


# Where the result is put back into its equation: pairs of what must agree.


def cholesky(dump):
    n, rest = 40, iter(dump)
    low = [[next(rest) if j <= i else 0.0 for j in range(n)] for i in range(n)]
    assert all(low[i][i] > 0 for i in range(n))
    return flat(times(low, transposed(low))), flat(definite(n))


def lu(dump):
    n = 40
    both = [dump[i * n : (i + 1) * n] for i in range(n)]
    low = matrix(n, n, lambda i, j: both[i][j] if j < i else float(i == j))
    up = matrix(n, n, lambda i, j: both[i][j] if j >= i else 0.0)
    return flat(times(low, up)), flat(definite(n))


def gramschmidt(dump):
    """Columns that depend on those before them leave rounding, amplified. But Q R = A holds for every column, those of Q are unit
    vectors, and the first ones, of which enough is left, are perpendicular."""
    m, n = 20, 30
    r = [dump[i * n : (i + 1) * n] for i in range(n)]
    q = [dump[n * n + i * n : n * n + (i + 1) * n] for i in range(m)]
    a = matrix(m, n, lambda i, j: i * j % m / m * 100 + 10)
    assert all(r[i][j] == 0 for i in range(n) for j in range(i))
    columns = transposed(q)
    first = next(k for k in range(n) if r[k][k] < 1)
    assert first > 5
    perpendicular = matrix(first, first, lambda i, j: dot(columns[i], columns[j]))
    identity = matrix(first, first, lambda i, j: float(i == j))
    lengths = [dot(column, column) for column in columns]
    return flat(times(q, r), perpendicular) + lengths, flat(a, identity) + [1.0] * n


EQUATIONS = {"cholesky": cholesky, "lu": lu, "gramschmidt": gramschmidt}
RESULTS = {
    "2mm": mm2, "3mm": mm3, "adi": adi, "atax": atax, "bicg": bicg, "correlation": correlation, "covariance": covariance,
    "deriche": deriche, "doitgen": doitgen, "durbin": durbin, "fdtd-2d": fdtd_2d, "floyd-warshall": floyd_warshall, "gemm": gemm,
    "gemver": gemver, "gesummv": gesummv, "heat-3d": heat_3d, "jacobi-1d": jacobi_1d, "jacobi-2d": jacobi_2d, "ludcmp": ludcmp,
    "mvt": mvt, "nussinov": nussinov, "seidel-2d": seidel_2d, "symm": symm, "syr2k": syr2k, "syrk": syrk, "trisolv": trisolv,
    "trmm": trmm,
}  # fmt: skip
# Relative to the largest element: 1e-10 unless said here.
EXACT = {"floyd-warshall", "nussinov"}
LOOSE = {"deriche": 1e-5}  # single precision


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in RESULTS | EQUATIONS:
        sys.exit(__doc__)
    kernel = sys.argv[1]
    with sys.stdin if sys.argv[2] == "-" else open(sys.argv[2], encoding="ascii") as lines:
        words = [line.split() for line in lines]
    if not words or words[-1][:2] != [kernel, "MINI"] or int(words[-1][2]) != len(words) - 1:
        sys.exit(f"reference: {kernel}: expected the output of {kernel} --dump, compiled with -DMINI_DATASET")
    dump = [struct.unpack(">d", bytes.fromhex(word))[0] for (word,) in words[:-1]]
    computed, expected = EQUATIONS[kernel](dump) if kernel in EQUATIONS else (dump, RESULTS[kernel]())
    if len(computed) != len(expected):
        sys.exit(f"reference: {kernel}: {len(computed)} elements, expected {len(expected)}")
    tolerance = 0.0 if kernel in EXACT else LOOSE.get(kernel, 1e-10) * max(map(abs, expected))
    worst = max(range(len(expected)), key=lambda i: math.inf if math.isnan(computed[i]) else abs(computed[i] - expected[i]))
    if not abs(computed[worst] - expected[worst]) <= tolerance:
        sys.exit(f"reference: {kernel}: element {worst} is {computed[worst]!r}, expected {expected[worst]!r}")
    difference = abs(computed[worst] - expected[worst])
    print(f"{kernel}: {len(expected)} elements within {tolerance:.1e}; the largest difference is {difference:.1e}")


if __name__ == "__main__":
    main()
