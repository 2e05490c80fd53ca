/* Server-sent events: `COUNT MILLISECONDS` is answered with so many events, so far apart, each of which the client gets when it happens. */
#include "sledge.h"

#include <stdio.h>
#include <time.h>

enum { COUNT_MAX = 100000, PAUSE_MS_MAX = 60000 };

static int refuse(const char *why) {
    sledge_status(400);
    return sledge_write_reply(why, strlen(why));
}

static void rest(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

SLEDGE_HANDLE {
    char body[64];
    size_t length;
    long count, pause_ms;
    if (sledge_read_body(body, sizeof body - 1, &length) != SLEDGE_OK) {
        return refuse("a count and milliseconds, in at most 63 bytes\n");
    }
    body[length] = 0;
    if (sscanf(body, "%ld %ld", &count, &pause_ms) != 2 || count < 0 || count > COUNT_MAX || pause_ms < 0 || pause_ms > PAUSE_MS_MAX) {
        return refuse("give a count to 100000 and milliseconds to 60000, such as: 5 200\n");
    }
    const char name[] = "content-type", type[] = "text/event-stream", cache[] = "cache-control", none[] = "no-store";
    sledge_set_header(name, sizeof name - 1, type, sizeof type - 1);
    sledge_set_header(cache, sizeof cache - 1, none, sizeof none - 1);
    /* From here on each write goes out, and the function ends when its client goes. */
    sledge_stream(-1);
    for (long number = 1; number <= count; number++) {
        char event[64];
        const int size = snprintf(event, sizeof event, "id: %ld\ndata: %ld of %ld\n\n", number, number, count);
        if (sledge_write_reply(event, (size_t)size) != SLEDGE_OK) {
            return SLEDGE_FAILED;
        }
        if (number < count) {
            rest(pause_ms);
        }
    }
    return SLEDGE_OK;
}
