/* gemver: A := A + u1 v1' + u2 v2';  x := beta A' y + z;  w := alpha A x. A is N x N.
 *
 * Initial values (all indices from 0):
 *     alpha = 1.5, beta = 1.2
 *     A[i][j] = (i*j mod N) / N
 *     u1[i] = i, u2[i] = f/2, v1[i] = f/4, v2[i] = f/6, y[i] = f/8, z[i] = f/9 with f = (i + 1) / N
 *     x[i] = w[i] = 0
 * x is computed along columns of A, as written above. */
#include "../polybench.h"

#define N PB_SIZE(40, 120, 400, 2000, 4000)

static void init(double a[N][N], double u1[N], double v1[N], double u2[N], double v2[N], double w[N],
                 double x[N], double y[N], double z[N]) {
    for (int i = 0; i < N; i++) {
        const double f = (double)(i + 1) / N;
        u1[i] = i;
        u2[i] = f / 2.0;
        v1[i] = f / 4.0;
        v2[i] = f / 6.0;
        y[i] = f / 8.0;
        z[i] = f / 9.0;
        x[i] = 0.0;
        w[i] = 0.0;
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)(i * j % N) / N;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void
kernel_gemver(double alpha, double beta, double a[restrict N][N], double u1[restrict N],
              double v1[restrict N], double u2[restrict N], double v2[restrict N],
              double w[restrict N], double x[restrict N], double y[restrict N], double z[restrict N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            a[i][j] = a[i][j] + u1[i] * v1[j] + u2[i] * v2[j];
        }
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            x[i] = x[i] + beta * a[j][i] * y[j];
        }
    }
    for (int i = 0; i < N; i++) {
        x[i] = x[i] + z[i];
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            w[i] = w[i] + alpha * a[i][j] * x[j];
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "gemver", argc, argv);
    double(*a)[N] = pb_array((size_t)N * N, sizeof(double));
    double *u1 = pb_array(N, sizeof(double));
    double *v1 = pb_array(N, sizeof(double));
    double *u2 = pb_array(N, sizeof(double));
    double *v2 = pb_array(N, sizeof(double));
    double *w = pb_array(N, sizeof(double));
    double *x = pb_array(N, sizeof(double));
    double *y = pb_array(N, sizeof(double));
    double *z = pb_array(N, sizeof(double));
    init(a, u1, v1, u2, v2, w, x, y, z);

    pb_start(&run);
    kernel_gemver(1.5, 1.2, a, u1, v1, u2, v2, w, x, y, z);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        pb_element(&run, w[i]);
    }
    return pb_end(&run);
}
