/* What every kernel shares: sizes, memory for its arrays, the clock, and the output.
 *
 * Named as in PolyBench/C, so that numbers can be set beside published ones; written anew. A kernel defines
 * its sizes per data set, calls pb_start and pb_stop around the computation and nothing else, and gives every
 * element that the computation wrote to pb_element, in order. Then
 *   standard error   gets one line, `NAME DATASET SECONDS`: the time of the kernel alone;
 *   standard output  gets one line, `NAME DATASET COUNT CHECKSUM`, and with the argument --dump before it
 *                    every element in a line, as the 16 hexadecimal digits of its bits.
 * The checksum is FNV-1a, 64 bits, over the bits of all elements, so that equal lines mean equal arrays. No printf
 * of floating point, which would be most of the artifact. */
#ifndef POLYBENCH_H
#define POLYBENCH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Which data set: one of the five is defined on the command line; LARGE if none is. */
#if defined(MINI_DATASET)
#define PB_DATASET "MINI"
#define PB_SIZE(mini, small, medium, large, extralarge) mini
#elif defined(SMALL_DATASET)
#define PB_DATASET "SMALL"
#define PB_SIZE(mini, small, medium, large, extralarge) small
#elif defined(MEDIUM_DATASET)
#define PB_DATASET "MEDIUM"
#define PB_SIZE(mini, small, medium, large, extralarge) medium
#elif defined(EXTRALARGE_DATASET)
#define PB_DATASET "EXTRALARGE"
#define PB_SIZE(mini, small, medium, large, extralarge) extralarge
#else
#define PB_DATASET "LARGE"
#define PB_SIZE(mini, small, medium, large, extralarge) large
#endif

typedef struct {
    const char *name;
    int dump;
    struct timespec start, stop;
    uint64_t count, checksum;
    size_t filled; /* of the buffer that --dump writes through */
    char buffer[1 << 14];
} pb_run;

static inline void pb_write(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        const ssize_t written = write(fd, bytes, length);
        if (written <= 0) {
            exit(1);
        }
        bytes += written;
        length -= (size_t)written;
    }
}

static inline void pb_fail(const char *message) {
    pb_write(STDERR_FILENO, message, strlen(message));
    pb_write(STDERR_FILENO, "\n", 1);
    exit(1);
}

/* From the arguments of main. */
static inline void pb_begin(pb_run *run, const char *name, int argc, char **argv) {
    memset(run, 0, sizeof *run);
    run->name = name;
    run->checksum = UINT64_C(0xcbf29ce484222325);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--dump") != 0) {
            pb_fail("polybench: the only argument there is is --dump");
        }
        run->dump = 1;
    }
}

/* Memory for an array; there is no program without it. */
static inline void *pb_array(size_t elements, size_t element_bytes) {
    void *memory = NULL;
    if (elements <= SIZE_MAX / element_bytes) {
        memory = malloc(elements * element_bytes);
    }
    if (memory == NULL) {
        pb_fail("polybench: not enough memory for this data set");
    }
    return memory;
}

/* Fills the n x n matrix `a`, row by row, with the symmetric positive definite matrix L L', the initial value of the kernels that
 * factor a matrix. L[i][j] = 1 - j/n below the diagonal, 1 on it, 0 above. */
static inline void pb_positive_definite(size_t n, double *a) {
    double *l = pb_array(n * n, sizeof(double));
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            l[i * n + j] = j < i ? -(double)j / (double)n + 1.0 : j == i ? 1.0 : 0.0;
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = 0.0;
            for (size_t k = 0; k <= j; k++) {
                sum += l[i * n + k] * l[j * n + k];
            }
            a[i * n + j] = sum;
            a[j * n + i] = sum;
        }
    }
    free(l);
}

static inline void pb_start(pb_run *run) {
    clock_gettime(CLOCK_MONOTONIC, &run->start);
}

static inline void pb_stop(pb_run *run) {
    clock_gettime(CLOCK_MONOTONIC, &run->stop);
}

/* Writes `number` at `to` in the given base with at least `width` digits; returns how many. */
static inline size_t pb_digits(char *to, uint64_t number, unsigned base, unsigned width) {
    char reversed[64];
    size_t count = 0;
    do {
        reversed[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0 || count < width);
    for (size_t i = 0; i < count; i++) {
        to[i] = reversed[count - 1 - i];
    }
    return count;
}

static inline void pb_flush(pb_run *run) {
    pb_write(STDOUT_FILENO, run->buffer, run->filled);
    run->filled = 0;
}

/* The next element of the result. */
static inline void pb_element(pb_run *run, double element) {
    uint64_t bits;
    memcpy(&bits, &element, sizeof bits);
    run->count++;
    for (int i = 0; i < 8; i++) {
        run->checksum = (run->checksum ^ (bits >> (8 * i) & 0xff)) * UINT64_C(0x100000001b3);
    }
    if (run->dump) {
        if (run->filled + 17 > sizeof run->buffer) {
            pb_flush(run);
        }
        run->filled += pb_digits(run->buffer + run->filled, bits, 16, 16);
        run->buffer[run->filled++] = '\n';
    }
}

static inline size_t pb_text(char *to, const char *text) {
    const size_t length = strlen(text);
    memcpy(to, text, length);
    return length;
}

/* The two lines. Returns what main returns. */
static inline int pb_end(pb_run *run) {
    char line[160];
    size_t n = 0;
    pb_flush(run);
    n += pb_text(line + n, run->name);
    n += pb_text(line + n, " " PB_DATASET " ");
    const size_t head = n;
    n += pb_digits(line + n, run->count, 10, 1);
    line[n++] = ' ';
    n += pb_digits(line + n, run->checksum, 16, 16);
    line[n++] = '\n';
    pb_write(STDOUT_FILENO, line, n);

    const int64_t nanoseconds = (int64_t)(run->stop.tv_sec - run->start.tv_sec) * 1000000000 +
                                (run->stop.tv_nsec - run->start.tv_nsec);
    n = head;
    n += pb_digits(line + n, (uint64_t)nanoseconds / 1000000000, 10, 1);
    line[n++] = '.';
    n += pb_digits(line + n, (uint64_t)nanoseconds % 1000000000, 10, 9);
    line[n++] = '\n';
    pb_write(STDERR_FILENO, line, n);
    return 0;
}

#endif
