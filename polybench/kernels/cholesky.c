/* cholesky: A = L L' for a symmetric positive definite A; L, lower triangular, replaces the lower triangle of A. A is N
 * x N.
 *
 *     L[i][j] = (A[i][j] - sum over k < j of L[i][k] L[j][k]) / L[j][j]  for j < i
 *     L[i][i] = sqrt(A[i][i] - sum over k < i of L[i][k]^2)
 * Initial values: pb_positive_definite. Row by row of L. */
#include <math.h>

#include "../polybench.h"

#define N PB_SIZE(40, 120, 400, 2000, 4000)

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_cholesky(double a[restrict N][N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i; j++) {
            for (int k = 0; k < j; k++) {
                a[i][j] -= a[i][k] * a[j][k];
            }
            a[i][j] /= a[j][j];
        }
        for (int k = 0; k < i; k++) {
            a[i][i] -= a[i][k] * a[i][k];
        }
        a[i][i] = sqrt(a[i][i]);
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "cholesky", argc, argv);
    double(*a)[N] = pb_array((size_t)N * N, sizeof(double));
    pb_positive_definite(N, a[0]);

    pb_start(&run);
    kernel_cholesky(a);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = 0; j <= i; j++) {
            pb_element(&run, a[i][j]);
        }
    }
    return pb_end(&run);
}
