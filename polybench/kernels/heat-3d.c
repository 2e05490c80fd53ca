/* heat-3d: the heat equation in three dimensions by finite differences, TSTEPS times from A to B and back. A and B are N
 * x N x N.
 *
 *     B[i][j][k] = A[i][j][k] + 0.125 (second differences of A along i, j and k), inside; the border stays
 * Initial values (all indices from 0):
 *     A[i][j][k] = B[i][j][k] = (i + j + (N - k)) * 10 / N */
#include "../polybench.h"

#define TSTEPS PB_SIZE(20, 40, 100, 500, 1000)
#define N PB_SIZE(10, 20, 40, 120, 200)

static void init(double a[N][N][N], double b[N][N][N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            for (int k = 0; k < N; k++) {
                a[i][j][k] = b[i][j][k] = (double)(i + j + (N - k)) * 10 / N;
            }
        }
    }
}

static inline void half_step(double to[restrict N][N][N], double from[restrict N][N][N]) {
    for (int i = 1; i < N - 1; i++) {
        for (int j = 1; j < N - 1; j++) {
            for (int k = 1; k < N - 1; k++) {
                to[i][j][k] = 0.125 * (from[i + 1][j][k] - 2.0 * from[i][j][k] + from[i - 1][j][k]) +
                              0.125 * (from[i][j + 1][k] - 2.0 * from[i][j][k] + from[i][j - 1][k]) +
                              0.125 * (from[i][j][k + 1] - 2.0 * from[i][j][k] + from[i][j][k - 1]) +
                              from[i][j][k];
            }
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_heat_3d(double a[restrict N][N][N],
                                                     double b[restrict N][N][N]) {
    for (int t = 1; t <= TSTEPS; t++) {
        half_step(b, a);
        half_step(a, b);
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "heat-3d", argc, argv);
    double(*a)[N][N] = pb_array((size_t)N * N * N, sizeof(double));
    double(*b)[N][N] = pb_array((size_t)N * N * N, sizeof(double));
    init(a, b);

    pb_start(&run);
    kernel_heat_3d(a, b);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            for (int k = 0; k < N; k++) {
                pb_element(&run, a[i][j][k]);
            }
        }
    }
    return pb_end(&run);
}
