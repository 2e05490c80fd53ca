/* mvt: x1 := x1 + A y1 and x2 := x2 + A' y2. A is N x N.
 *
 * Initial values (all indices from 0):
 *     x1[i] = (i mod N) / N
 *     x2[i] = ((i + 1) mod N) / N
 *     y1[i] = ((i + 3) mod N) / N
 *     y2[i] = ((i + 4) mod N) / N
 *     A[i][j] = (i*j mod N) / N
 * The second product goes down the columns of A. */
#include "../polybench.h"

#define N PB_SIZE(40, 120, 400, 2000, 4000)

static void init(double x1[N], double x2[N], double y1[N], double y2[N], double a[N][N]) {
    for (int i = 0; i < N; i++) {
        x1[i] = (double)(i % N) / N;
        x2[i] = (double)((i + 1) % N) / N;
        y1[i] = (double)((i + 3) % N) / N;
        y2[i] = (double)((i + 4) % N) / N;
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)(i * j % N) / N;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_mvt(double x1[restrict N], double x2[restrict N],
                                                 double y1[restrict N], double y2[restrict N],
                                                 double a[restrict N][N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            x1[i] = x1[i] + a[i][j] * y1[j];
        }
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            x2[i] = x2[i] + a[j][i] * y2[j];
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "mvt", argc, argv);
    double(*a)[N] = pb_array((size_t)N * N, sizeof(double));
    double *x1 = pb_array(N, sizeof(double));
    double *x2 = pb_array(N, sizeof(double));
    double *y1 = pb_array(N, sizeof(double));
    double *y2 = pb_array(N, sizeof(double));
    init(x1, x2, y1, y2, a);

    pb_start(&run);
    kernel_mvt(x1, x2, y1, y2, a);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        pb_element(&run, x1[i]);
    }
    for (int i = 0; i < N; i++) {
        pb_element(&run, x2[i]);
    }
    return pb_end(&run);
}
