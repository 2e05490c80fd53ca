/* symm: C := alpha A B + beta C, where A is M x M and symmetric and only its lower triangle is kept; B and C are M x N.
 *
 * Initial values (all indices from 0):
 *     alpha = 1.5, beta = 1.2
 *     C[i][j] = ((i + j) mod 100) / M
 *     B[i][j] = ((N + i - j) mod 100) / M
 *     A[i][j] = ((i + j) mod 100) / M for j <= i, and -999, never to be read, above the diagonal
 * Element A[i][k] contributes to row i and, as A[k][i], to row k of C at the same time, as in BLAS. */
#include "../polybench.h"

#define M PB_SIZE(20, 60, 200, 1000, 2000)
#define N PB_SIZE(30, 80, 240, 1200, 2600)

static void init(double c[M][N], double a[M][M], double b[M][N]) {
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            c[i][j] = (double)((i + j) % 100) / M;
            b[i][j] = (double)((N + i - j) % 100) / M;
        }
    }
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < M; j++) {
            a[i][j] = j <= i ? (double)((i + j) % 100) / M : -999.0;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_symm(double alpha, double beta, double c[restrict M][N],
                                                  double a[restrict M][M],
                                                  double b[restrict M][N]) {
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            double below = 0.0;
            for (int k = 0; k < i; k++) {
                c[k][j] += alpha * b[i][j] * a[i][k];
                below += b[k][j] * a[i][k];
            }
            c[i][j] = beta * c[i][j] + alpha * b[i][j] * a[i][i] + alpha * below;
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "symm", argc, argv);
    double(*c)[N] = pb_array((size_t)M * N, sizeof(double));
    double(*a)[M] = pb_array((size_t)M * M, sizeof(double));
    double(*b)[N] = pb_array((size_t)M * N, sizeof(double));
    init(c, a, b);

    pb_start(&run);
    kernel_symm(1.5, 1.2, c, a, b);
    pb_stop(&run);

    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, c[i][j]);
        }
    }
    return pb_end(&run);
}
