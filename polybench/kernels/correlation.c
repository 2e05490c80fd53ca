/* correlation: the matrix of Pearson's correlation coefficients between the M columns of N observations.
 *
 *     mean[j] = sum over i of data[i][j] / N
 *     deviation[j] = sqrt(sum over i of (data[i][j] - mean[j])^2 / N), or 1 if that is at most 0.1
 *     data[i][j] := (data[i][j] - mean[j]) / (sqrt(N) deviation[j])
 *     corr[i][j] = sum over k of data[k][i] data[k][j], and 1 on the diagonal
 * Initial values (all indices from 0):
 *     data[i][j] = i*j / M + i
 * Only the upper triangle is computed; the lower is its mirror image. */
#include <math.h>

#include "../polybench.h"

#define M PB_SIZE(28, 80, 240, 1200, 2600)
#define N PB_SIZE(32, 100, 260, 1400, 3000)

static void init(double data[N][M]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < M; j++) {
            data[i][j] = (double)(i * j) / M + i;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_correlation(double count, double data[restrict N][M],
                                                         double corr[restrict M][M],
                                                         double mean[restrict M],
                                                         double deviation[restrict M]) {
    const double smallest = 0.1;
    for (int j = 0; j < M; j++) {
        mean[j] = 0.0;
        for (int i = 0; i < N; i++) {
            mean[j] += data[i][j];
        }
        mean[j] /= count;
    }
    for (int j = 0; j < M; j++) {
        deviation[j] = 0.0;
        for (int i = 0; i < N; i++) {
            deviation[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
        }
        deviation[j] = sqrt(deviation[j] / count);
        if (deviation[j] <= smallest) {
            deviation[j] = 1.0;
        }
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < M; j++) {
            data[i][j] -= mean[j];
            data[i][j] /= sqrt(count) * deviation[j];
        }
    }
    for (int i = 0; i < M - 1; i++) {
        corr[i][i] = 1.0;
        for (int j = i + 1; j < M; j++) {
            corr[i][j] = 0.0;
            for (int k = 0; k < N; k++) {
                corr[i][j] += data[k][i] * data[k][j];
            }
            corr[j][i] = corr[i][j];
        }
    }
    corr[M - 1][M - 1] = 1.0;
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "correlation", argc, argv);
    double(*data)[M] = pb_array((size_t)N * M, sizeof(double));
    double(*corr)[M] = pb_array((size_t)M * M, sizeof(double));
    double *mean = pb_array(M, sizeof(double));
    double *deviation = pb_array(M, sizeof(double));
    init(data);

    pb_start(&run);
    kernel_correlation(N, data, corr, mean, deviation);
    pb_stop(&run);

    for (int i = 0; i < M; i++) {
        for (int j = 0; j < M; j++) {
            pb_element(&run, corr[i][j]);
        }
    }
    return pb_end(&run);
}
