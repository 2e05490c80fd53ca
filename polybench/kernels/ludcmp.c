/* ludcmp: the solution x of A x = b, by A = L U as in lu, then L y = b from the first, U x = y from the last element on.
 * A is N x N.
 *
 * Initial values: A from pb_positive_definite; with indices from 0
 *     b[i] = (i + 1) / N / 2 + 4
 * Differs from lu in collecting each sum in a variable. */
#include "../polybench.h"

#define N PB_SIZE(40, 120, 400, 2000, 4000)

static void init(double a[N][N], double b[N]) {
    pb_positive_definite(N, a[0]);
    for (int i = 0; i < N; i++) {
        b[i] = (double)(i + 1) / N / 2.0 + 4.0;
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_ludcmp(double a[restrict N][N], double b[restrict N],
                                                    double x[restrict N], double y[restrict N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i; j++) {
            double rest = a[i][j];
            for (int k = 0; k < j; k++) {
                rest -= a[i][k] * a[k][j];
            }
            a[i][j] = rest / a[j][j];
        }
        for (int j = i; j < N; j++) {
            double rest = a[i][j];
            for (int k = 0; k < i; k++) {
                rest -= a[i][k] * a[k][j];
            }
            a[i][j] = rest;
        }
    }
    for (int i = 0; i < N; i++) {
        double rest = b[i];
        for (int j = 0; j < i; j++) {
            rest -= a[i][j] * y[j];
        }
        y[i] = rest;
    }
    for (int i = N - 1; i >= 0; i--) {
        double rest = y[i];
        for (int j = i + 1; j < N; j++) {
            rest -= a[i][j] * x[j];
        }
        x[i] = rest / a[i][i];
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "ludcmp", argc, argv);
    double(*a)[N] = pb_array((size_t)N * N, sizeof(double));
    double *b = pb_array(N, sizeof(double));
    double *x = pb_array(N, sizeof(double));
    double *y = pb_array(N, sizeof(double));
    init(a, b);

    pb_start(&run);
    kernel_ludcmp(a, b, x, y);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        pb_element(&run, x[i]);
    }
    return pb_end(&run);
}
