// The median time of what is done many times. What reading the clock takes is counted in.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TIMES = 2001 };

static int64_t times[TIMES];

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int compare(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

// Prints the median of `times`, in nanoseconds.
static void print_median(void) {
    qsort(times, TIMES, sizeof *times, compare);
    printf("%lld", (long long)times[TIMES / 2]);
}
