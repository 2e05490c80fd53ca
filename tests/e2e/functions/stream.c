// Carries out the lines of its input. A call that answers something else than is expected ends it with status 9.
#include "lines.h"

#include <errno.h>
#include <time.h>

static char block[100000];

static void expect(int64_t got, const char *expected) {
    if (got != strtoll(expected, NULL, 10)) {
        exit(9);
    }
}

static void nap(int ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

// Bytes of which each is told by its place.
static void fill(size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        const size_t count = bytes - at < sizeof block ? bytes - at : sizeof block;
        for (size_t i = 0; i < count; i++) {
            block[i] = (char)((at + i) % 251);
        }
        if (sledge_write_reply(block, count) != SLEDGE_OK) {
            exit(8);
        }
        at += count;
    }
}

static void say(const char *text) {
    sledge_write_reply(text, strlen(text));
    sledge_write_reply("\n", 1);
}

static void carry_out(const char *word, const char *name, const char *text) {
    const int32_t signals = sledge_kv_open("signals", 7);
    if (strcmp(word, "stream") == 0) {
        expect(sledge_stream(strtoll(name, NULL, 10)), text);
    } else if (strcmp(word, "status") == 0) {
        expect(sledge_status(atoi(name)), text);
    } else if (strcmp(word, "set") == 0) {
        expect(sledge_set_header(name, strlen(name), text, strlen(text)), "0");
    } else if (strcmp(word, "refused") == 0) {
        expect(sledge_set_header(name, strlen(name), "x", 1), text);
    } else if (strcmp(word, "trailer") == 0) {
        expect(sledge_set_trailer(name, strlen(name), text, strlen(text)), "0");
    } else if (strcmp(word, "untrailer") == 0) {
        expect(sledge_set_trailer(name, strlen(name), "x", 1), text);
    } else if (strcmp(word, "trailers") == 0) {
        // How many there may be, and what is said of one more.
        long count = 0;
        int32_t last;
        while ((last = sledge_add_trailer("x-many", 6, "x", 1)) == 0) {
            count++;
        }
        expect(last, text);
        printf("%ld\n", count);
    } else if (strcmp(word, "flood") == 0) {
        expect(sledge_stream(-1), "0");
        fill((size_t)atol(name));
    } else if (strcmp(word, "torn") == 0) {
        expect(sledge_stream(-1), "0");
        fill((size_t)atol(name));
        nap(20);
        abort();
    } else if (strcmp(word, "say") == 0) {
        say(name);
    } else if (strcmp(word, "whole") == 0) {
        expect(sledge_stream(-1), "0");
        say(name);
        say(text);
    } else if (strcmp(word, "fill") == 0) {
        fill((size_t)atol(name));
    } else if (strcmp(word, "error") == 0) {
        // A write fails with that number.
        expect(write(STDOUT_FILENO, "x", 1) < 0 ? errno : 0, name);
    } else if (strcmp(word, "sleep") == 0) {
        nap(atoi(name));
    } else if (strcmp(word, "spin") == 0) {
        for (volatile int on = 1; on;) {
        }
    } else if (strcmp(word, "mark") == 0) {
        expect(sledge_kv_set(signals, name, strlen(name), "", 0, NULL), "0");
    } else if (strcmp(word, "marked") == 0) {
        say(sledge_kv_exists(signals, name, strlen(name)) == 1 ? "yes" : "no");
    } else if (strcmp(word, "await") == 0) {
        while (sledge_kv_exists(signals, name, strlen(name)) == 0) {
            nap(2);
        }
    } else if (strcmp(word, "exit") == 0) {
        exit(atoi(name));
    } else {
        abort();
    }
}

int main(void) {
    return each_line(carry_out);
}
