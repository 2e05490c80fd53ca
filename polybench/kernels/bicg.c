/* bicg: s := A' r and q := A p, the two products of the biconjugate gradient method. A is N x M.
 *
 * Initial values (all indices from 0):
 *     p[j] = (j mod M) / M
 *     r[i] = (i mod N) / N
 *     A[i][j] = (i*(j + 1) mod N) / N
 * Both in one pass over A. */
#include "../polybench.h"

#define M PB_SIZE(38, 116, 390, 1900, 1800)
#define N PB_SIZE(42, 124, 410, 2100, 2200)

static void init(double a[N][M], double r[N], double p[M]) {
    for (int j = 0; j < M; j++) {
        p[j] = (double)(j % M) / M;
    }
    for (int i = 0; i < N; i++) {
        r[i] = (double)(i % N) / N;
        for (int j = 0; j < M; j++) {
            a[i][j] = (double)(i * (j + 1) % N) / N;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_bicg(double a[restrict N][M], double s[restrict M],
                                                  double q[restrict N], double p[restrict M],
                                                  double r[restrict N]) {
    for (int j = 0; j < M; j++) {
        s[j] = 0.0;
    }
    for (int i = 0; i < N; i++) {
        q[i] = 0.0;
        for (int j = 0; j < M; j++) {
            s[j] += r[i] * a[i][j];
            q[i] += a[i][j] * p[j];
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "bicg", argc, argv);
    double(*a)[M] = pb_array((size_t)N * M, sizeof(double));
    double *s = pb_array(M, sizeof(double));
    double *q = pb_array(N, sizeof(double));
    double *p = pb_array(M, sizeof(double));
    double *r = pb_array(N, sizeof(double));
    init(a, r, p);

    pb_start(&run);
    kernel_bicg(a, s, q, p, r);
    pb_stop(&run);

    for (int j = 0; j < M; j++) {
        pb_element(&run, s[j]);
    }
    for (int i = 0; i < N; i++) {
        pb_element(&run, q[i]);
    }
    return pb_end(&run);
}
