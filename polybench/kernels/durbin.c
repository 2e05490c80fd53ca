/* durbin: the solution y of the Yule-Walker equations T y = -r, where T is the symmetric Toeplitz matrix with ones on
 * its diagonal and r[0], r[1], ... beside it, by the Levinson-Durbin recursion.
 *
 *     beta := (1 - alpha^2) beta;  alpha := -(r[k] + sum over i < k of r[k - i - 1] y[i]) / beta
 *     y[i] := y[i] + alpha y[k - i - 1] for i < k;  y[k] := alpha
 * Initial values (all indices from 0):
 *     r[i] = N + 1 - i */
#include "../polybench.h"

#define N PB_SIZE(40, 120, 400, 2000, 4000)

static void init(double r[N]) {
    for (int i = 0; i < N; i++) {
        r[i] = N + 1 - i;
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_durbin(double r[restrict N], double y[restrict N],
                                                    double z[restrict N]) {
    double alpha = -r[0];
    double beta = 1.0;
    y[0] = -r[0];
    for (int k = 1; k < N; k++) {
        beta = (1.0 - alpha * alpha) * beta;
        double sum = 0.0;
        for (int i = 0; i < k; i++) {
            sum += r[k - i - 1] * y[i];
        }
        alpha = -(r[k] + sum) / beta;
        for (int i = 0; i < k; i++) {
            z[i] = y[i] + alpha * y[k - i - 1];
        }
        for (int i = 0; i < k; i++) {
            y[i] = z[i];
        }
        y[k] = alpha;
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "durbin", argc, argv);
    double *r = pb_array(N, sizeof(double));
    double *y = pb_array(N, sizeof(double));
    double *z = pb_array(N, sizeof(double));
    init(r);

    pb_start(&run);
    kernel_durbin(r, y, z);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        pb_element(&run, y[i]);
    }
    return pb_end(&run);
}
