// Gets a value many times from a store that is far away, from the time at the start of its input on (nanoseconds since 1970, 8 bytes,
// little-endian): so all that are asked begin together.
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "../../sdk/c/sledge.h"

enum { TIMES = 400, SECOND = 1000000000 };

int main(void) {
    static char value[100];
    int64_t start;
    if (read(STDIN_FILENO, &start, sizeof start) != sizeof start) {
        return 1;
    }
    const struct timespec time = {start / SECOND, start % SECOND};
    if (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL) != 0) {
        return 2;
    }
    const int32_t bucket = sledge_kv_open("bench", 5);
    for (int index = 0; index < TIMES; index++) {
        if (sledge_kv_get(bucket, "key", 3, value, sizeof value, NULL) != sizeof value) {
            return 3;
        }
    }
    return 0;
}
