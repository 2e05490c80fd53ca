/* Small dense matrices: row-major arrays of double whose sizes the caller knows.
 *
 * Only what a Kalman filter asks for: products, a Cholesky factorisation and forward substitution.
 * All functions are static and small, so that the compiler sees the sizes and unrolls for them.
 * Input and output arrays never overlap unless a function says so. */
#ifndef GPS_EKF_MATRIX_H
#define GPS_EKF_MATRIX_H

#include <math.h>
#include <stdbool.h>

/* c (rows x cols) = a (rows x inner) * b (inner x cols) */
static inline void mat_mul(double *restrict c, const double *restrict a, const double *restrict b,
                           int rows, int inner, int cols) {
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) {
            c[i * cols + j] = 0.0;
        }
        for (int k = 0; k < inner; k++) {
            const double factor = a[i * inner + k];
            for (int j = 0; j < cols; j++) {
                c[i * cols + j] += factor * b[k * cols + j];
            }
        }
    }
}

/* c (rows x cols) = a (rows x inner) * transpose of b (cols x inner) */
static inline void mat_mul_transposed(double *restrict c, const double *restrict a,
                                      const double *restrict b, int rows, int inner, int cols) {
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) {
            double sum = 0.0;
            for (int k = 0; k < inner; k++) {
                sum += a[i * inner + k] * b[j * inner + k];
            }
            c[i * cols + j] = sum;
        }
    }
}

/* Overwrites the lower triangle of the symmetric matrix a (n x n) with L, where a = L * L'.
 * Only the lower triangle is read. False if a is not positive definite (NaN included). */
static inline bool mat_cholesky(double *a, int n) {
    for (int j = 0; j < n; j++) {
        double pivot = a[j * n + j];
        for (int k = 0; k < j; k++) {
            pivot -= a[j * n + k] * a[j * n + k];
        }
        if (!(pivot > 0.0)) {
            return false;
        }
        const double root = sqrt(pivot);
        a[j * n + j] = root;
        for (int i = j + 1; i < n; i++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) {
                sum -= a[i * n + k] * a[j * n + k];
            }
            a[i * n + j] = sum / root;
        }
    }
    return true;
}

/* Overwrites b (n x cols) with the solution of L * x = b, L the lower triangle of l (n x n). */
static inline void mat_forward_substitute(const double *restrict l, double *restrict b, int n,
                                          int cols) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            const double factor = l[i * n + k];
            for (int j = 0; j < cols; j++) {
                b[i * cols + j] -= factor * b[k * cols + j];
            }
        }
        const double reciprocal = 1.0 / l[i * n + i];
        for (int j = 0; j < cols; j++) {
            b[i * cols + j] *= reciprocal;
        }
    }
}

#endif
