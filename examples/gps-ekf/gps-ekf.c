/* gps-ekf: one step of the GPS filter of ekf.h as a function.
 *
 * Standard input: state and measurement, standard output: the next state (layout: README.md).
 * Anything else on the input: a line on standard error and exit status 1, and no output.
 * Plain read and write and no stdio, which would be most of the artifact. */
#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ekf.h"

_Static_assert(sizeof(double) == 8, "f64");
_Static_assert(sizeof(ekf_state) == 576, "8 + 64 numbers, no padding");
_Static_assert(sizeof(ekf_request) == 712, "state, dt and four satellites, no padding");
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers are taken from the body as they are: the machine has to be little-endian"
#endif

/* False when the reader went away. */
static bool write_all(int fd, const void *bytes, size_t length) {
    const char *next = bytes;
    while (length > 0) {
        const ssize_t written = write(fd, next, length);
        if (written <= 0) {
            return false;
        }
        next += written;
        length -= (size_t)written;
    }
    return true;
}

static void complain(const char *text) {
    write_all(STDERR_FILENO, text, strlen(text));
}

static int fail(const char *text) {
    complain("gps-ekf: ");
    complain(text);
    complain("\n");
    return 1;
}

static int fail_length(size_t length, bool more) {
    char digits[24], *first = digits + sizeof digits;
    *--first = '\0';
    do {
        *--first = (char)('0' + length % 10);
        length /= 10;
    } while (length > 0);
    complain("gps-ekf: the body has ");
    complain(more ? "more than " : "");
    complain(first);
    complain(" bytes; expected are 712: 8 + 64 numbers of state, dt, 4 x 4 of satellites, each a "
             "little-endian f64 (see README.md)\n");
    return 1;
}

static bool all_finite(const double *numbers, size_t count) {
    bool all = true; /* without an end before the last, so that several are looked at at once */
    for (size_t i = 0; i < count; i++) {
        all &= fabs(numbers[i]) <= DBL_MAX;
    }
    return all;
}

int main(void) {
    static union {
        ekf_request request;
        char bytes[sizeof(ekf_request) + 1]; /* one more, to notice a longer body */
    } body;
    size_t length = 0;
    while (length < sizeof body.bytes) {
        const ssize_t got = read(STDIN_FILENO, body.bytes + length, sizeof body.bytes - length);
        if (got < 0) {
            return fail("the body cannot be read");
        }
        if (got == 0) {
            break;
        }
        length += (size_t)got;
    }
    if (length != sizeof(ekf_request)) {
        const bool more = length > sizeof(ekf_request);
        return fail_length(more ? sizeof(ekf_request) : length, more);
    }

    ekf_state *state = &body.request.state;
    const ekf_measurement *measurement = &body.request.measurement;
    if (!all_finite((const double *)&body.request, sizeof(ekf_request) / sizeof(double))) {
        return fail("the body holds a number that is not finite");
    }
    if (!(measurement->dt >= 0.0)) {
        return fail("dt, the time since the state was true, is negative");
    }
    if (!ekf_step(state, measurement) ||
        !all_finite((const double *)state, sizeof *state / sizeof(double))) {
        return fail("no solution: the covariance is not positive definite, or a satellite is at "
                    "the receiver");
    }
    return write_all(STDOUT_FILENO, state, sizeof *state) ? 0 : fail("the reply cannot be written");
}
