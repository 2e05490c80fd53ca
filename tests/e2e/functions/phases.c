// Carries out the lines of its input: begins phases, computes, waits.
#include "lines.h"

#include <stdint.h>
#include <time.h>

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void carry_out(const char *word, const char *name, const char *text) {
    (void)text;
    const int number = atoi(name);
    if (strcmp(word, "phase") == 0) {
        printf("%d\n", sledge_phase((uint32_t)number));
    } else if (strcmp(word, "spin") == 0) {
        for (const int64_t end = now_ms() + number; now_ms() < end;) {
        }
    } else if (strcmp(word, "sleep") == 0) {
        const struct timespec time = {number / 1000, number % 1000 * 1000000};
        nanosleep(&time, NULL);
    } else {
        abort();
    }
}

int main(void) {
    return each_line(carry_out);
}
