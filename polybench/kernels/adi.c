/* adi: the heat equation in two dimensions by alternating directions: in each of TSTEPS steps a half that is implicit
 * along columns (u to v), then one that is implicit along rows (v to u), each a tridiagonal system per line, solved by
 * elimination (coefficients p, q) and substitution. N x N, and the border is kept at 1.
 *
 *     DX = DY = 1/N, DT = 1/TSTEPS;  first half: factor 2 DT/DX^2, second: 1 DT/DY^2
 *     a = c = -first/2,  b = 1 + first,  d = f = -second/2,  e = 1 + second
 * Initial values (all indices from 0):
 *     u[i][j] = (i + N - j) / N */
#include "../polybench.h"

#define TSTEPS PB_SIZE(20, 40, 100, 500, 1000)
#define N PB_SIZE(20, 60, 200, 1000, 2000)

static void init(double u[N][N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            u[i][j] = (double)(i + N - j) / N;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_adi(double u[restrict N][N], double v[restrict N][N],
                                                 double p[restrict N][N], double q[restrict N][N]) {
    const double dx = 1.0 / N;
    const double dy = 1.0 / N;
    const double dt = 1.0 / TSTEPS;
    const double first = 2.0 * dt / (dx * dx);
    const double second = 1.0 * dt / (dy * dy);
    const double a = -first / 2.0, b = 1.0 + first, c = a;
    const double d = -second / 2.0, e = 1.0 + second, f = d;

    for (int t = 1; t <= TSTEPS; t++) {
        for (int i = 1; i < N - 1; i++) {
            v[0][i] = 1.0;
            p[i][0] = 0.0;
            q[i][0] = v[0][i];
            for (int j = 1; j < N - 1; j++) {
                p[i][j] = -c / (a * p[i][j - 1] + b);
                q[i][j] = (-d * u[j][i - 1] + (1.0 + 2.0 * d) * u[j][i] - f * u[j][i + 1] - a * q[i][j - 1]) /
                          (a * p[i][j - 1] + b);
            }
            v[N - 1][i] = 1.0;
            for (int j = N - 2; j >= 1; j--) {
                v[j][i] = p[i][j] * v[j + 1][i] + q[i][j];
            }
        }
        for (int i = 1; i < N - 1; i++) {
            u[i][0] = 1.0;
            p[i][0] = 0.0;
            q[i][0] = u[i][0];
            for (int j = 1; j < N - 1; j++) {
                p[i][j] = -f / (d * p[i][j - 1] + e);
                q[i][j] = (-a * v[i - 1][j] + (1.0 + 2.0 * a) * v[i][j] - c * v[i + 1][j] - d * q[i][j - 1]) /
                          (d * p[i][j - 1] + e);
            }
            u[i][N - 1] = 1.0;
            for (int j = N - 2; j >= 1; j--) {
                u[i][j] = p[i][j] * u[i][j + 1] + q[i][j];
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "adi", argc, argv);
    double(*u)[N] = pb_array((size_t)N * N, sizeof(double));
    double(*v)[N] = pb_array((size_t)N * N, sizeof(double));
    double(*p)[N] = pb_array((size_t)N * N, sizeof(double));
    double(*q)[N] = pb_array((size_t)N * N, sizeof(double));
    init(u);

    pb_start(&run);
    kernel_adi(u, v, p, q);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, u[i][j]);
        }
    }
    return pb_end(&run);
}
