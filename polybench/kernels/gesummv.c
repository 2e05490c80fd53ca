/* gesummv: y := alpha A x + beta B x. A and B are N x N.
 *
 * Initial values (all indices from 0):
 *     alpha = 1.5, beta = 1.2
 *     x[i] = (i mod N) / N
 *     A[i][j] = ((i*j + 1) mod N) / N
 *     B[i][j] = ((i*j + 2) mod N) / N
 * Both products in one pass. */
#include "../polybench.h"

#define N PB_SIZE(30, 90, 250, 1300, 2800)

static void init(double a[N][N], double b[N][N], double x[N]) {
    for (int i = 0; i < N; i++) {
        x[i] = (double)(i % N) / N;
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)((i * j + 1) % N) / N;
            b[i][j] = (double)((i * j + 2) % N) / N;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_gesummv(double alpha, double beta, double a[restrict N][N],
                                                     double b[restrict N][N], double t[restrict N],
                                                     double x[restrict N], double y[restrict N]) {
    for (int i = 0; i < N; i++) {
        t[i] = 0.0;
        y[i] = 0.0;
        for (int j = 0; j < N; j++) {
            t[i] = a[i][j] * x[j] + t[i];
            y[i] = b[i][j] * x[j] + y[i];
        }
        y[i] = alpha * t[i] + beta * y[i];
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "gesummv", argc, argv);
    double(*a)[N] = pb_array((size_t)N * N, sizeof(double));
    double(*b)[N] = pb_array((size_t)N * N, sizeof(double));
    double *t = pb_array(N, sizeof(double));
    double *x = pb_array(N, sizeof(double));
    double *y = pb_array(N, sizeof(double));
    init(a, b, x);

    pb_start(&run);
    kernel_gesummv(1.5, 1.2, a, b, t, x, y);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        pb_element(&run, y[i]);
    }
    return pb_end(&run);
}
