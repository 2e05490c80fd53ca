/* doitgen: A[r][q][p] := sum over s of A[r][q][s] C4[s][p], from multi-resolution analysis. A is NR x NQ x NP, C4 is NP
 * x NP.
 *
 * Initial values (all indices from 0):
 *     A[r][q][p] = ((r*q + p) mod NP) / NP
 *     C4[s][p] = (s*p mod NP) / NP
 * In place, through a row that holds the new values until all of the old have been used. */
#include "../polybench.h"

#define NQ PB_SIZE(8, 20, 40, 140, 220)
#define NR PB_SIZE(10, 25, 50, 150, 250)
#define NP PB_SIZE(12, 30, 60, 160, 270)

static void init(double a[NR][NQ][NP], double c4[NP][NP]) {
    for (int r = 0; r < NR; r++) {
        for (int q = 0; q < NQ; q++) {
            for (int p = 0; p < NP; p++) {
                a[r][q][p] = (double)((r * q + p) % NP) / NP;
            }
        }
    }
    for (int s = 0; s < NP; s++) {
        for (int p = 0; p < NP; p++) {
            c4[s][p] = (double)(s * p % NP) / NP;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_doitgen(double a[restrict NR][NQ][NP],
                                                     double c4[restrict NP][NP],
                                                     double sum[restrict NP]) {
    for (int r = 0; r < NR; r++) {
        for (int q = 0; q < NQ; q++) {
            for (int p = 0; p < NP; p++) {
                sum[p] = 0.0;
                for (int s = 0; s < NP; s++) {
                    sum[p] += a[r][q][s] * c4[s][p];
                }
            }
            for (int p = 0; p < NP; p++) {
                a[r][q][p] = sum[p];
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "doitgen", argc, argv);
    double(*a)[NQ][NP] = pb_array((size_t)NR * NQ * NP, sizeof(double));
    double(*c4)[NP] = pb_array((size_t)NP * NP, sizeof(double));
    double *sum = pb_array(NP, sizeof(double));
    init(a, c4);

    pb_start(&run);
    kernel_doitgen(a, c4, sum);
    pb_stop(&run);

    for (int r = 0; r < NR; r++) {
        for (int q = 0; q < NQ; q++) {
            for (int p = 0; p < NP; p++) {
                pb_element(&run, a[r][q][p]);
            }
        }
    }
    return pb_end(&run);
}
