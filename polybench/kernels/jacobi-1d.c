/* jacobi-1d: the mean of each element and its two neighbours, TSTEPS times from A to B and back. A and B have N
 * elements.
 *
 *     B[i] = 0.33333 (A[i-1] + A[i] + A[i+1]), inside; the border stays
 * Initial values (all indices from 0):
 *     A[i] = (i + 2) / N,  B[i] = (i + 3) / N */
#include "../polybench.h"

#define TSTEPS PB_SIZE(20, 40, 100, 500, 1000)
#define N PB_SIZE(30, 120, 400, 2000, 4000)

static void init(double a[N], double b[N]) {
    for (int i = 0; i < N; i++) {
        a[i] = ((double)i + 2) / N;
        b[i] = ((double)i + 3) / N;
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_jacobi_1d(double a[restrict N], double b[restrict N]) {
    for (int t = 0; t < TSTEPS; t++) {
        for (int i = 1; i < N - 1; i++) {
            b[i] = 0.33333 * (a[i - 1] + a[i] + a[i + 1]);
        }
        for (int i = 1; i < N - 1; i++) {
            a[i] = 0.33333 * (b[i - 1] + b[i] + b[i + 1]);
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "jacobi-1d", argc, argv);
    double *a = pb_array(N, sizeof(double));
    double *b = pb_array(N, sizeof(double));
    init(a, b);

    pb_start(&run);
    kernel_jacobi_1d(a, b);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        pb_element(&run, a[i]);
    }
    return pb_end(&run);
}
