/* fdtd-2d: Maxwell's equations in two dimensions by finite differences in the time domain (Yee's scheme): the electric
 * fields ex and ey and the magnetic field hz, all NX x NY, over TMAX steps; step t sets the border ey[0][.] to
 * source[t].
 *
 *     ey[i][j] -= 0.5 (hz[i][j] - hz[i-1][j]);  ex[i][j] -= 0.5 (hz[i][j] - hz[i][j-1])
 *     hz[i][j] -= 0.7 (ex[i][j+1] - ex[i][j] + ey[i+1][j] - ey[i][j])
 * Initial values (all indices from 0):
 *     source[t] = t
 *     ex[i][j] = i*(j + 1) / NX,  ey[i][j] = i*(j + 2) / NY,  hz[i][j] = i*(j + 3) / NX */
#include "../polybench.h"

#define TMAX PB_SIZE(20, 40, 100, 500, 1000)
#define NX PB_SIZE(20, 60, 200, 1000, 2000)
#define NY PB_SIZE(30, 80, 240, 1200, 2600)

static void init(double ex[NX][NY], double ey[NX][NY], double hz[NX][NY], double source[TMAX]) {
    for (int t = 0; t < TMAX; t++) {
        source[t] = t;
    }
    for (int i = 0; i < NX; i++) {
        for (int j = 0; j < NY; j++) {
            ex[i][j] = (double)(i * (j + 1)) / NX;
            ey[i][j] = (double)(i * (j + 2)) / NY;
            hz[i][j] = (double)(i * (j + 3)) / NX;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_fdtd_2d(double ex[restrict NX][NY],
                                                     double ey[restrict NX][NY],
                                                     double hz[restrict NX][NY],
                                                     double source[restrict TMAX]) {
    for (int t = 0; t < TMAX; t++) {
        for (int j = 0; j < NY; j++) {
            ey[0][j] = source[t];
        }
        for (int i = 1; i < NX; i++) {
            for (int j = 0; j < NY; j++) {
                ey[i][j] = ey[i][j] - 0.5 * (hz[i][j] - hz[i - 1][j]);
            }
        }
        for (int i = 0; i < NX; i++) {
            for (int j = 1; j < NY; j++) {
                ex[i][j] = ex[i][j] - 0.5 * (hz[i][j] - hz[i][j - 1]);
            }
        }
        for (int i = 0; i < NX - 1; i++) {
            for (int j = 0; j < NY - 1; j++) {
                hz[i][j] = hz[i][j] - 0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
            }
        }
    }
}

static void output(pb_run *run, double field[NX][NY]) {
    for (int i = 0; i < NX; i++) {
        for (int j = 0; j < NY; j++) {
            pb_element(run, field[i][j]);
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "fdtd-2d", argc, argv);
    double(*ex)[NY] = pb_array((size_t)NX * NY, sizeof(double));
    double(*ey)[NY] = pb_array((size_t)NX * NY, sizeof(double));
    double(*hz)[NY] = pb_array((size_t)NX * NY, sizeof(double));
    double *source = pb_array(TMAX, sizeof(double));
    init(ex, ey, hz, source);

    pb_start(&run);
    kernel_fdtd_2d(ex, ey, hz, source);
    pb_stop(&run);

    output(&run, ex);
    output(&run, ey);
    output(&run, hz);
    return pb_end(&run);
}
