/* trmm: B := alpha A' B, where A is M x M, lower triangular with ones on the diagonal; B is M x N.
 *
 * Initial values (all indices from 0):
 *     alpha = 1.5
 *     A[i][j] = ((i + j) mod M) / M for j < i, 1 for j = i; what is above the diagonal is never read
 *     B[i][j] = ((N + i - j) mod N) / N
 * In place, from the first row on, since row i needs only rows below it. */
#include "../polybench.h"

#define M PB_SIZE(20, 60, 200, 1000, 2000)
#define N PB_SIZE(30, 80, 240, 1200, 2600)

static void init(double a[M][M], double b[M][N]) {
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < i; j++) {
            a[i][j] = (double)((i + j) % M) / M;
        }
        a[i][i] = 1.0;
        for (int j = 0; j < N; j++) {
            b[i][j] = (double)((N + i - j) % N) / N;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_trmm(double alpha, double a[restrict M][M],
                                                  double b[restrict M][N]) {
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            for (int k = i + 1; k < M; k++) {
                b[i][j] += a[k][i] * b[k][j];
            }
            b[i][j] = alpha * b[i][j];
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "trmm", argc, argv);
    double(*a)[M] = pb_array((size_t)M * M, sizeof(double));
    double(*b)[N] = pb_array((size_t)M * N, sizeof(double));
    init(a, b);

    pb_start(&run);
    kernel_trmm(1.5, a, b);
    pb_stop(&run);

    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, b[i][j]);
        }
    }
    return pb_end(&run);
}
