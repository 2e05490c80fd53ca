/* covariance: the sample covariance matrix of the M columns of N observations.
 *
 *     mean[j] = sum over i of data[i][j] / N
 *     data[i][j] := data[i][j] - mean[j]
 *     cov[i][j] = sum over k of data[k][i] data[k][j] / (N - 1)
 * Initial values (all indices from 0):
 *     data[i][j] = i*j / M
 * Only the upper triangle is computed; the lower is its mirror image. */
#include "../polybench.h"

#define M PB_SIZE(28, 80, 240, 1200, 2600)
#define N PB_SIZE(32, 100, 260, 1400, 3000)

static void init(double data[N][M]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < M; j++) {
            data[i][j] = (double)(i * j) / M;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_covariance(double count, double data[restrict N][M],
                                                        double cov[restrict M][M],
                                                        double mean[restrict M]) {
    for (int j = 0; j < M; j++) {
        mean[j] = 0.0;
        for (int i = 0; i < N; i++) {
            mean[j] += data[i][j];
        }
        mean[j] /= count;
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < M; j++) {
            data[i][j] -= mean[j];
        }
    }
    for (int i = 0; i < M; i++) {
        for (int j = i; j < M; j++) {
            cov[i][j] = 0.0;
            for (int k = 0; k < N; k++) {
                cov[i][j] += data[k][i] * data[k][j];
            }
            cov[i][j] /= count - 1.0;
            cov[j][i] = cov[i][j];
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "covariance", argc, argv);
    double(*data)[M] = pb_array((size_t)N * M, sizeof(double));
    double(*cov)[M] = pb_array((size_t)M * M, sizeof(double));
    double *mean = pb_array(M, sizeof(double));
    init(data);

    pb_start(&run);
    kernel_covariance(N, data, cov, mean);
    pb_stop(&run);

    for (int i = 0; i < M; i++) {
        for (int j = 0; j < M; j++) {
            pb_element(&run, cov[i][j]);
        }
    }
    return pb_end(&run);
}
