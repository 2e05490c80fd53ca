/* jacobi-2d: the mean of each element and its four neighbours, TSTEPS times from A to B and back. A and B are N x N.
 *
 *     B[i][j] = 0.2 (A[i][j] + A[i][j-1] + A[i][j+1] + A[i+1][j] + A[i-1][j]), inside; the border stays
 * Initial values (all indices from 0):
 *     A[i][j] = (i*(j + 2) + 2) / N,  B[i][j] = (i*(j + 3) + 3) / N */
#include "../polybench.h"

#define TSTEPS PB_SIZE(20, 40, 100, 500, 1000)
#define N PB_SIZE(30, 90, 250, 1300, 2800)

static void init(double a[N][N], double b[N][N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            a[i][j] = ((double)i * (j + 2) + 2) / N;
            b[i][j] = ((double)i * (j + 3) + 3) / N;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_jacobi_2d(double a[restrict N][N], double b[restrict N][N]) {
    for (int t = 0; t < TSTEPS; t++) {
        for (int i = 1; i < N - 1; i++) {
            for (int j = 1; j < N - 1; j++) {
                b[i][j] = 0.2 * (a[i][j] + a[i][j - 1] + a[i][j + 1] + a[i + 1][j] + a[i - 1][j]);
            }
        }
        for (int i = 1; i < N - 1; i++) {
            for (int j = 1; j < N - 1; j++) {
                a[i][j] = 0.2 * (b[i][j] + b[i][j - 1] + b[i][j + 1] + b[i + 1][j] + b[i - 1][j]);
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "jacobi-2d", argc, argv);
    double(*a)[N] = pb_array((size_t)N * N, sizeof(double));
    double(*b)[N] = pb_array((size_t)N * N, sizeof(double));
    init(a, b);

    pb_start(&run);
    kernel_jacobi_2d(a, b);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, a[i][j]);
        }
    }
    return pb_end(&run);
}
