/* seidel-2d: the mean of each element and its eight neighbours, in place (Gauss-Seidel), TSTEPS times. A is N x N.
 *
 *     A[i][j] := (sum of A[i-1..i+1][j-1..j+1], row by row) / 9, inside; the border stays
 * Initial values (all indices from 0):
 *     A[i][j] = (i*(j + 2) + 2) / N */
#include "../polybench.h"

#define TSTEPS PB_SIZE(20, 40, 100, 500, 1000)
#define N PB_SIZE(40, 120, 400, 2000, 4000)

static void init(double a[N][N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            a[i][j] = ((double)i * (j + 2) + 2) / N;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_seidel_2d(double a[restrict N][N]) {
    for (int t = 0; t < TSTEPS; t++) {
        for (int i = 1; i < N - 1; i++) {
            for (int j = 1; j < N - 1; j++) {
                a[i][j] = (a[i - 1][j - 1] + a[i - 1][j] + a[i - 1][j + 1] + a[i][j - 1] + a[i][j] + a[i][j + 1] +
                           a[i + 1][j - 1] + a[i + 1][j] + a[i + 1][j + 1]) /
                          9.0;
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "seidel-2d", argc, argv);
    double(*a)[N] = pb_array((size_t)N * N, sizeof(double));
    init(a);

    pb_start(&run);
    kernel_seidel_2d(a);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, a[i][j]);
        }
    }
    return pb_end(&run);
}
