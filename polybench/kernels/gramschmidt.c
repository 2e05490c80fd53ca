/* gramschmidt: A = Q R by the modified Gram-Schmidt process, the columns of Q orthonormal, R upper triangular. A and Q
 * are M x N, R is N x N.
 *
 *     R[k][k] = norm of column k of A;  Q[.][k] = A[.][k] / R[k][k]
 *     for j > k:  R[k][j] = Q[.][k]' A[.][j];  A[.][j] := A[.][j] - Q[.][k] R[k][j]
 * Initial values (all indices from 0):
 *     A[i][j] = (i*j mod M) / M * 100 + 10;  Q = R = 0
 * All along columns. The last N - M columns depend on the others, so that what is left of them is rounding. */
#include <math.h>

#include "../polybench.h"

#define M PB_SIZE(20, 60, 200, 1000, 2000)
#define N PB_SIZE(30, 80, 240, 1200, 2600)

static void init(double a[M][N], double r[N][N], double q[M][N]) {
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)(i * j % M) / M * 100.0 + 10.0;
            q[i][j] = 0.0;
        }
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            r[i][j] = 0.0;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_gramschmidt(double a[restrict M][N],
                                                         double r[restrict N][N],
                                                         double q[restrict M][N]) {
    for (int k = 0; k < N; k++) {
        double square = 0.0;
        for (int i = 0; i < M; i++) {
            square += a[i][k] * a[i][k];
        }
        r[k][k] = sqrt(square);
        for (int i = 0; i < M; i++) {
            q[i][k] = a[i][k] / r[k][k];
        }
        for (int j = k + 1; j < N; j++) {
            r[k][j] = 0.0;
            for (int i = 0; i < M; i++) {
                r[k][j] += q[i][k] * a[i][j];
            }
            for (int i = 0; i < M; i++) {
                a[i][j] = a[i][j] - q[i][k] * r[k][j];
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "gramschmidt", argc, argv);
    double(*a)[N] = pb_array((size_t)M * N, sizeof(double));
    double(*r)[N] = pb_array((size_t)N * N, sizeof(double));
    double(*q)[N] = pb_array((size_t)M * N, sizeof(double));
    init(a, r, q);

    pb_start(&run);
    kernel_gramschmidt(a, r, q);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, r[i][j]);
        }
    }
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, q[i][j]);
        }
    }
    return pb_end(&run);
}
