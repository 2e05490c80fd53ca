// A task of a workflow: does what a word in its input says, and otherwise replies with its input.
#include "lines.h"

#include <time.h>

static int64_t count(const char *key) {
    int64_t sum = 0;
    if (sledge_kv_increment(sledge_kv_open("default", 7), key, strlen(key), 1, &sum) != SLEDGE_OK) {
        exit(1);
    }
    return sum;
}

int main(void) {
    size_t length;
    if (sledge_read_body(input, sizeof input - 1, &length) != SLEDGE_OK) {
        return 1;
    }
    if (strstr(input, "crash") != NULL) {
        __builtin_trap();
    } else if (strstr(input, "refuse") != NULL) {
        sledge_status(422);
        printf("{\"errorType\": \"Refused\", \"errorMessage\": \"not today\"}");
    } else if (strstr(input, "plain") != NULL) {
        sledge_status(503);
        printf("come back later");
    } else if (strstr(input, "flaky") != NULL) {
        // Fails twice.
        const int64_t times = count("flaky");
        if (times < 3) {
            sledge_status(500);
            printf("{\"errorType\": \"Flaky\", \"errorMessage\": \"%lld\"}", (long long)times);
        } else {
            printf("{\"times\": %lld}", (long long)times);
        }
    } else if (strstr(input, "slow") != NULL) {
        const struct timespec time = {0, 300000000};
        nanosleep(&time, NULL);
        printf("\"done\"");
    } else if (strstr(input, "never") != NULL) {
        const struct timespec time = {60, 0};
        nanosleep(&time, NULL);
        count("ended");
    } else if (strncmp(input, "\"count ", 7) == 0) {
        // Under the key that it is given, for a moment.
        const struct timespec time = {0, 5000000};
        nanosleep(&time, NULL);
        input[length - 1] = 0;
        printf("%lld", (long long)count(input + 7));
    } else {
        fwrite(input, 1, length, stdout);
    }
    return 0;
}
