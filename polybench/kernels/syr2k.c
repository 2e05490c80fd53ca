/* syr2k: C := alpha (A B' + B A') + beta C, lower triangle with the diagonal. C is N x N, A and B are N x M.
 *
 * Initial values (all indices from 0):
 *     alpha = 1.5, beta = 1.2
 *     A[i][k] = ((i*k + 1) mod N) / N
 *     B[i][k] = ((i*k + 2) mod M) / M
 *     C[i][j] = ((i*j + 3) mod N) / M
 * Row by row of C, and with the innermost loop along the row, down the columns of A and B. */
#include "../polybench.h"

#define M PB_SIZE(20, 60, 200, 1000, 2000)
#define N PB_SIZE(30, 80, 240, 1200, 2600)

static void init(double c[N][N], double a[N][M], double b[N][M]) {
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < M; k++) {
            a[i][k] = (double)((i * k + 1) % N) / N;
            b[i][k] = (double)((i * k + 2) % M) / M;
        }
        for (int j = 0; j < N; j++) {
            c[i][j] = (double)((i * j + 3) % N) / M;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_syr2k(double alpha, double beta, double c[restrict N][N],
                                                   double a[restrict N][M],
                                                   double b[restrict N][M]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j <= i; j++) {
            c[i][j] *= beta;
        }
        for (int k = 0; k < M; k++) {
            for (int j = 0; j <= i; j++) {
                c[i][j] += a[j][k] * alpha * b[i][k] + b[j][k] * alpha * a[i][k];
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "syr2k", argc, argv);
    double(*c)[N] = pb_array((size_t)N * N, sizeof(double));
    double(*a)[M] = pb_array((size_t)N * M, sizeof(double));
    double(*b)[M] = pb_array((size_t)N * M, sizeof(double));
    init(c, a, b);

    pb_start(&run);
    kernel_syr2k(1.5, 1.2, c, a, b);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, c[i][j]);
        }
    }
    return pb_end(&run);
}
