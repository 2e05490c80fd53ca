/* gemm: C := alpha * A * B + beta * C, dense matrices, C is NI x NJ, A is NI x NK, B is NK x NJ.
 *
 * Initial values (all indices from 0):
 *     alpha = 1.5, beta = 1.2
 *     C[i][j] = ((i*j + 1) mod NI) / NI
 *     A[i][k] = (i*(k + 1) mod NK) / NK
 *     B[k][j] = (k*(j + 2) mod NJ) / NJ
 * Row by row and with the innermost loop along rows of B and C, so that memory is walked in order. */
#include "../polybench.h"

#define NI PB_SIZE(20, 60, 200, 1000, 2000)
#define NJ PB_SIZE(25, 70, 220, 1100, 2300)
#define NK PB_SIZE(30, 80, 240, 1200, 2600)

static void init(double c[NI][NJ], double a[NI][NK], double b[NK][NJ]) {
    for (int i = 0; i < NI; i++) {
        for (int j = 0; j < NJ; j++) {
            c[i][j] = (double)((i * j + 1) % NI) / NI;
        }
    }
    for (int i = 0; i < NI; i++) {
        for (int k = 0; k < NK; k++) {
            a[i][k] = (double)(i * (k + 1) % NK) / NK;
        }
    }
    for (int k = 0; k < NK; k++) {
        for (int j = 0; j < NJ; j++) {
            b[k][j] = (double)(k * (j + 2) % NJ) / NJ;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_gemm(double alpha, double beta, double c[restrict NI][NJ],
                                                  double a[restrict NI][NK],
                                                  double b[restrict NK][NJ]) {
    for (int i = 0; i < NI; i++) {
        for (int j = 0; j < NJ; j++) {
            c[i][j] *= beta;
        }
        for (int k = 0; k < NK; k++) {
            for (int j = 0; j < NJ; j++) {
                c[i][j] += alpha * a[i][k] * b[k][j];
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "gemm", argc, argv);
    double(*c)[NJ] = pb_array((size_t)NI * NJ, sizeof(double));
    double(*a)[NK] = pb_array((size_t)NI * NK, sizeof(double));
    double(*b)[NJ] = pb_array((size_t)NK * NJ, sizeof(double));
    init(c, a, b);

    pb_start(&run);
    kernel_gemm(1.5, 1.2, c, a, b);
    pb_stop(&run);

    for (int i = 0; i < NI; i++) {
        for (int j = 0; j < NJ; j++) {
            pb_element(&run, c[i][j]);
        }
    }
    return pb_end(&run);
}
