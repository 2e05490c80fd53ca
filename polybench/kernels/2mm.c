/* 2mm: D := alpha * A * B * C + beta * D, by way of T = alpha * A * B. A is NI x NK, B is NK x NJ, C is NJ x NL, D is NI
 * x NL.
 *
 * Initial values (all indices from 0):
 *     alpha = 1.5, beta = 1.2
 *     A[i][k] = ((i*k + 1) mod NI) / NI
 *     B[k][j] = (k*(j + 1) mod NJ) / NJ
 *     C[j][l] = ((j*(l + 3) + 1) mod NL) / NL
 *     D[i][l] = (i*(l + 2) mod NK) / NK
 * Each product element by element, an inner product along a row of the left and a column of the right factor. */
#include "../polybench.h"

#define NI PB_SIZE(16, 40, 180, 800, 1600)
#define NJ PB_SIZE(18, 50, 190, 900, 1800)
#define NK PB_SIZE(22, 70, 210, 1100, 2200)
#define NL PB_SIZE(24, 80, 220, 1200, 2400)

static void init(double a[NI][NK], double b[NK][NJ], double c[NJ][NL], double d[NI][NL]) {
    for (int i = 0; i < NI; i++) {
        for (int k = 0; k < NK; k++) {
            a[i][k] = (double)((i * k + 1) % NI) / NI;
        }
    }
    for (int k = 0; k < NK; k++) {
        for (int j = 0; j < NJ; j++) {
            b[k][j] = (double)(k * (j + 1) % NJ) / NJ;
        }
    }
    for (int j = 0; j < NJ; j++) {
        for (int l = 0; l < NL; l++) {
            c[j][l] = (double)((j * (l + 3) + 1) % NL) / NL;
        }
    }
    for (int i = 0; i < NI; i++) {
        for (int l = 0; l < NL; l++) {
            d[i][l] = (double)(i * (l + 2) % NK) / NK;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_2mm(double alpha, double beta, double t[restrict NI][NJ],
                                                 double a[restrict NI][NK], double b[restrict NK][NJ],
                                                 double c[restrict NJ][NL],
                                                 double d[restrict NI][NL]) {
    for (int i = 0; i < NI; i++) {
        for (int j = 0; j < NJ; j++) {
            t[i][j] = 0.0;
            for (int k = 0; k < NK; k++) {
                t[i][j] += alpha * a[i][k] * b[k][j];
            }
        }
    }
    for (int i = 0; i < NI; i++) {
        for (int l = 0; l < NL; l++) {
            d[i][l] *= beta;
            for (int j = 0; j < NJ; j++) {
                d[i][l] += t[i][j] * c[j][l];
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "2mm", argc, argv);
    double(*t)[NJ] = pb_array((size_t)NI * NJ, sizeof(double));
    double(*a)[NK] = pb_array((size_t)NI * NK, sizeof(double));
    double(*b)[NJ] = pb_array((size_t)NK * NJ, sizeof(double));
    double(*c)[NL] = pb_array((size_t)NJ * NL, sizeof(double));
    double(*d)[NL] = pb_array((size_t)NI * NL, sizeof(double));
    init(a, b, c, d);

    pb_start(&run);
    kernel_2mm(1.5, 1.2, t, a, b, c, d);
    pb_stop(&run);

    for (int i = 0; i < NI; i++) {
        for (int l = 0; l < NL; l++) {
            pb_element(&run, d[i][l]);
        }
    }
    return pb_end(&run);
}
