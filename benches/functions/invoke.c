// Invokes the function `empty` many times; replies with the median time of one, call to result, in nanoseconds. What reading the clock takes is
// counted in.
#include "../../sdk/c/sledge.h"

#include <stdio.h>
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

int main(void) {
    for (int index = 0; index < TIMES; index++) {
        const int64_t start = now();
        if (sledge_invoke("empty", 5, NULL, 0, NULL, 0) != 0) {
            return 2;
        }
        times[index] = now() - start;
    }
    qsort(times, TIMES, sizeof *times, compare);
    printf("%lld", (long long)times[TIMES / 2]);
    return 0;
}
