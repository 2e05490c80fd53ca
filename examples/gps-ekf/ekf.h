/* An extended Kalman filter for GPS: where a receiver is, how it moves, how its clock is off.
 *
 * State, 8 numbers:      x, vx, y, vy, z, vz   position (m) and velocity (m/s), Earth-centred
 *                        b, d                  clock bias (m) and clock drift (m/s), times c
 * Measurement, 4 times:  where a satellite is (m) and the pseudorange to it (m)
 *
 * Motion: constant velocity and constant clock drift, both pushed by white noise, so that over dt
 *     F = [1 dt; 0 1] for each of the four pairs,
 *     Q = s * [dt^3/3 dt^2/2; dt^2/2 dt] plus, for the clock, white noise on the bias: [w*dt 0; 0 0].
 * Observation: pseudorange = |position - satellite| + b, with independent noise of variance r.
 * Its derivative by the position is the unit vector from the satellite to the receiver, by b is 1. */
#ifndef GPS_EKF_EKF_H
#define GPS_EKF_EKF_H

#include <stdbool.h>
#include <string.h>

#include "matrix.h"

enum { EKF_STATES = 8, EKF_SATELLITES = 4, EKF_CLOCK = 6 };

/* Spectral density of the acceleration, (m/s^2)^2/Hz: a car in town. */
#define EKF_ACCELERATION_NOISE 36.0
/* The receiver's quartz: white noise on the bias, m^2/s, and on the drift, (m/s)^2/s. */
#define EKF_CLOCK_BIAS_NOISE 36.0
#define EKF_CLOCK_DRIFT_NOISE 0.01
/* Variance of a pseudorange, m^2. */
#define EKF_RANGE_NOISE 36.0

/* The body of a request in memory; every field is a little-endian f64 (README.md). */
typedef struct {
    double x[EKF_STATES];
    double p[EKF_STATES * EKF_STATES]; /* covariance of x, row-major, symmetric */
} ekf_state;

typedef struct {
    double position[3];
    double pseudorange;
} ekf_satellite;

typedef struct {
    double dt; /* seconds since the state was true */
    ekf_satellite satellites[EKF_SATELLITES];
} ekf_measurement;

typedef struct {
    ekf_state state;
    ekf_measurement measurement;
} ekf_request;

/* x = F x;  P = F P F' + Q */
static inline void ekf_predict(ekf_state *s, double dt) {
    double *p = s->p;
    enum { N = EKF_STATES };
    for (int i = 0; i < N; i += 2) {
        s->x[i] += dt * s->x[i + 1];
    }
    /* F adds dt times each odd row to the even row above it, F' the same with columns. */
    for (int i = 0; i < N; i += 2) {
        for (int j = 0; j < N; j++) {
            p[i * N + j] += dt * p[(i + 1) * N + j];
        }
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j += 2) {
            p[i * N + j] += dt * p[i * N + j + 1];
        }
    }
    const double dt2 = dt * dt / 2.0, dt3 = dt * dt * dt / 3.0;
    for (int i = 0; i < N; i += 2) {
        const double noise = i == EKF_CLOCK ? EKF_CLOCK_DRIFT_NOISE : EKF_ACCELERATION_NOISE;
        p[i * N + i] += noise * dt3;
        p[i * N + i + 1] += noise * dt2;
        p[(i + 1) * N + i] += noise * dt2;
        p[(i + 1) * N + i + 1] += noise * dt;
    }
    p[EKF_CLOCK * N + EKF_CLOCK] += EKF_CLOCK_BIAS_NOISE * dt;
}

/* h = derivative of the pseudoranges by the state; y = measured - predicted pseudoranges.
 * False if a satellite is where the receiver is (no direction). */
static inline bool ekf_observe(const ekf_state *s, const ekf_measurement *m,
                               double h[EKF_SATELLITES * EKF_STATES], double y[EKF_SATELLITES]) {
    for (int i = 0; i < EKF_SATELLITES; i++) {
        const ekf_satellite *satellite = &m->satellites[i];
        double *row = &h[i * EKF_STATES];
        double squared = 0.0;
        for (int axis = 0; axis < 3; axis++) {
            const double difference = s->x[2 * axis] - satellite->position[axis];
            row[2 * axis] = difference;
            row[2 * axis + 1] = 0.0;
            squared += difference * difference;
        }
        const double distance = sqrt(squared);
        if (!(distance > 0.0)) {
            return false;
        }
        for (int axis = 0; axis < 3; axis++) {
            row[2 * axis] /= distance;
        }
        row[EKF_CLOCK] = 1.0;
        row[EKF_CLOCK + 1] = 0.0;
        y[i] = satellite->pseudorange - (distance + s->x[EKF_CLOCK]);
    }
    return true;
}

/* Predicts over dt, then corrects by the measurement. With S = H P H' + R = L L', the gain is
 * K = P H' S^-1, so that for W = L^-1 H P
 *     x += K y         = W' (L^-1 y)
 *     P -= K S K'      = W' W            which stays symmetric by construction.
 * False if the numbers make no sense: S is not positive definite or a satellite is at the receiver. */
static inline bool ekf_step(ekf_state *s, const ekf_measurement *m) {
    enum { N = EKF_STATES, M = EKF_SATELLITES };
    /* Static, so that compilers see that they do not overlap the state. */
    static double h[M * N], y[M], w[M * N], innovation[M * M];

    ekf_predict(s, m->dt);
    if (!ekf_observe(s, m, h, y)) {
        return false;
    }
    mat_mul(w, h, s->p, M, N, N);
    mat_mul_transposed(innovation, w, h, M, N, M);
    for (int i = 0; i < M; i++) {
        innovation[i * M + i] += EKF_RANGE_NOISE;
    }
    if (!mat_cholesky(innovation, M)) {
        return false;
    }
    mat_forward_substitute(innovation, w, M, N);
    mat_forward_substitute(innovation, y, M, 1);
    for (int k = 0; k < M; k++) {
        for (int i = 0; i < N; i++) {
            const double factor = w[k * N + i];
            s->x[i] += factor * y[k];
            /* Unrolled where that is WebAssembly, too: a row of w stays in registers. */
#pragma GCC unroll 8
            for (int j = 0; j < N; j++) {
                s->p[i * N + j] -= factor * w[k * N + j];
            }
        }
    }
    return true;
}

#endif
