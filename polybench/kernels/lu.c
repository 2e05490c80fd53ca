/* lu: A = L U without pivoting; L, lower triangular with ones on the diagonal, and U, upper triangular, replace A. A is
 * N x N.
 *
 *     L[i][j] = (A[i][j] - sum over k < j of L[i][k] U[k][j]) / U[j][j]  for j < i
 *     U[i][j] = A[i][j] - sum over k < i of L[i][k] U[k][j]              for j >= i
 * Initial values: pb_positive_definite. Row by row. */
#include "../polybench.h"

#define N PB_SIZE(40, 120, 400, 2000, 4000)

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_lu(double a[restrict N][N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i; j++) {
            for (int k = 0; k < j; k++) {
                a[i][j] -= a[i][k] * a[k][j];
            }
            a[i][j] /= a[j][j];
        }
        for (int j = i; j < N; j++) {
            for (int k = 0; k < i; k++) {
                a[i][j] -= a[i][k] * a[k][j];
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "lu", argc, argv);
    double(*a)[N] = pb_array((size_t)N * N, sizeof(double));
    pb_positive_definite(N, a[0]);

    pb_start(&run);
    kernel_lu(a);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, a[i][j]);
        }
    }
    return pb_end(&run);
}
