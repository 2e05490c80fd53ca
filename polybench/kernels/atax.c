/* atax: y := A' (A x). A is M x N.
 *
 * Initial values (all indices from 0):
 *     x[i] = 1 + i / N
 *     A[i][j] = ((i + j) mod N) / (5 M)
 * Row by row of A, each used twice. */
#include "../polybench.h"

#define M PB_SIZE(38, 116, 390, 1900, 1800)
#define N PB_SIZE(42, 124, 410, 2100, 2200)

static void init(double a[M][N], double x[N]) {
    for (int j = 0; j < N; j++) {
        x[j] = 1 + j / (double)N;
    }
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)((i + j) % N) / (5 * M);
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_atax(double a[restrict M][N], double x[restrict N],
                                                  double y[restrict N], double t[restrict M]) {
    for (int j = 0; j < N; j++) {
        y[j] = 0.0;
    }
    for (int i = 0; i < M; i++) {
        t[i] = 0.0;
        for (int j = 0; j < N; j++) {
            t[i] += a[i][j] * x[j];
        }
        for (int j = 0; j < N; j++) {
            y[j] += a[i][j] * t[i];
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "atax", argc, argv);
    double(*a)[N] = pb_array((size_t)M * N, sizeof(double));
    double *x = pb_array(N, sizeof(double));
    double *y = pb_array(N, sizeof(double));
    double *t = pb_array(M, sizeof(double));
    init(a, x);

    pb_start(&run);
    kernel_atax(a, x, y, t);
    pb_stop(&run);

    for (int j = 0; j < N; j++) {
        pb_element(&run, y[j]);
    }
    return pb_end(&run);
}
