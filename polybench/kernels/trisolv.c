/* trisolv: the solution x of L x = b, L lower triangular, N x N, by forward substitution.
 *
 * Initial values (all indices from 0):
 *     b[i] = i
 *     L[i][j] = (i + N - j + 1) * 2 / N for j <= i; what is above the diagonal is never read */
#include "../polybench.h"

#define N PB_SIZE(40, 120, 400, 2000, 4000)

static void init(double l[N][N], double b[N]) {
    for (int i = 0; i < N; i++) {
        b[i] = i;
        for (int j = 0; j <= i; j++) {
            l[i][j] = (double)(i + N - j + 1) * 2 / N;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_trisolv(double l[restrict N][N], double x[restrict N],
                                                     double b[restrict N]) {
    for (int i = 0; i < N; i++) {
        x[i] = b[i];
        for (int j = 0; j < i; j++) {
            x[i] -= l[i][j] * x[j];
        }
        x[i] = x[i] / l[i][i];
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "trisolv", argc, argv);
    double(*l)[N] = pb_array((size_t)N * N, sizeof(double));
    double *x = pb_array(N, sizeof(double));
    double *b = pb_array(N, sizeof(double));
    init(l, b);

    pb_start(&run);
    kernel_trisolv(l, x, b);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        pb_element(&run, x[i]);
    }
    return pb_end(&run);
}
