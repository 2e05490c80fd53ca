/* 3mm: G := (A * B) * (C * D), by way of E = A * B and F = C * D. A is NI x NK, B is NK x NJ, C is NJ x NM, D is NM x
 * NL.
 *
 * Initial values (all indices from 0):
 *     A[i][k] = ((i*k + 1) mod NI) / (5 NI)
 *     B[k][j] = ((k*(j + 1) + 2) mod NJ) / (5 NJ)
 *     C[j][m] = (j*(m + 3) mod NL) / (5 NL)
 *     D[m][l] = ((m*(l + 2) + 2) mod NK) / (5 NK)
 * Each product element by element, an inner product along a row of the left and a column of the right factor. */
#include "../polybench.h"

#define NI PB_SIZE(16, 40, 180, 800, 1600)
#define NJ PB_SIZE(18, 50, 190, 900, 1800)
#define NK PB_SIZE(20, 60, 200, 1000, 2000)
#define NL PB_SIZE(22, 70, 210, 1100, 2200)
#define NM PB_SIZE(24, 80, 220, 1200, 2400)

static void init(double a[NI][NK], double b[NK][NJ], double c[NJ][NM], double d[NM][NL]) {
    for (int i = 0; i < NI; i++) {
        for (int k = 0; k < NK; k++) {
            a[i][k] = (double)((i * k + 1) % NI) / (5 * NI);
        }
    }
    for (int k = 0; k < NK; k++) {
        for (int j = 0; j < NJ; j++) {
            b[k][j] = (double)((k * (j + 1) + 2) % NJ) / (5 * NJ);
        }
    }
    for (int j = 0; j < NJ; j++) {
        for (int m = 0; m < NM; m++) {
            c[j][m] = (double)(j * (m + 3) % NL) / (5 * NL);
        }
    }
    for (int m = 0; m < NM; m++) {
        for (int l = 0; l < NL; l++) {
            d[m][l] = (double)((m * (l + 2) + 2) % NK) / (5 * NK);
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_3mm(double e[restrict NI][NJ], double a[restrict NI][NK],
                                                 double b[restrict NK][NJ], double f[restrict NJ][NL],
                                                 double c[restrict NJ][NM], double d[restrict NM][NL],
                                                 double g[restrict NI][NL]) {
    for (int i = 0; i < NI; i++) {
        for (int j = 0; j < NJ; j++) {
            e[i][j] = 0.0;
            for (int k = 0; k < NK; k++) {
                e[i][j] += a[i][k] * b[k][j];
            }
        }
    }
    for (int j = 0; j < NJ; j++) {
        for (int l = 0; l < NL; l++) {
            f[j][l] = 0.0;
            for (int m = 0; m < NM; m++) {
                f[j][l] += c[j][m] * d[m][l];
            }
        }
    }
    for (int i = 0; i < NI; i++) {
        for (int l = 0; l < NL; l++) {
            g[i][l] = 0.0;
            for (int j = 0; j < NJ; j++) {
                g[i][l] += e[i][j] * f[j][l];
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "3mm", argc, argv);
    double(*a)[NK] = pb_array((size_t)NI * NK, sizeof(double));
    double(*b)[NJ] = pb_array((size_t)NK * NJ, sizeof(double));
    double(*c)[NM] = pb_array((size_t)NJ * NM, sizeof(double));
    double(*d)[NL] = pb_array((size_t)NM * NL, sizeof(double));
    double(*e)[NJ] = pb_array((size_t)NI * NJ, sizeof(double));
    double(*f)[NL] = pb_array((size_t)NJ * NL, sizeof(double));
    double(*g)[NL] = pb_array((size_t)NI * NL, sizeof(double));
    init(a, b, c, d);

    pb_start(&run);
    kernel_3mm(e, a, b, f, c, d, g);
    pb_stop(&run);

    for (int i = 0; i < NI; i++) {
        for (int l = 0; l < NL; l++) {
            pb_element(&run, g[i][l]);
        }
    }
    return pb_end(&run);
}
