// Gets a value of 100 bytes many times; replies with the median time of one, call to result, in nanoseconds. What reading the clock takes is
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
    static char value[100];
    uint64_t version;
    const int32_t bucket = sledge_kv_open("bench", 5);
    if (bucket < 0 || sledge_kv_set(bucket, "key", 3, value, sizeof value, NULL) != 0) {
        return 1;
    }
    for (int index = 0; index < TIMES; index++) {
        const int64_t start = now();
        if (sledge_kv_get(bucket, "key", 3, value, sizeof value, &version) != sizeof value) {
            return 2;
        }
        times[index] = now() - start;
    }
    qsort(times, TIMES, sizeof *times, compare);
    printf("%lld", (long long)times[TIMES / 2]);
    return 0;
}
