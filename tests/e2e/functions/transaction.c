// Carries out the lines of its input on the key-value store, and replies with a line for each.
#define INPUT_BYTES (6 << 20)

#include "lines.h"

#include <stdbool.h>

#include <time.h>

#define VALUE_MAX 4096

static char value[1 << 20];

static int32_t bucket(void) {
    return sledge_kv_open("b", 1);
}

static void tell(const char *what, int32_t result) {
    if (result < 0) {
        printf("error %d\n", -result);
    } else {
        printf("%s\n", what);
    }
}

// The number under a key; zero if there is none.
static long long number(const char *key) {
    const int32_t got = sledge_kv_get(bucket(), key, strlen(key), value, VALUE_MAX, NULL);
    if (got < 0) {
        return 0;
    }
    value[got < VALUE_MAX ? got : VALUE_MAX - 1] = 0;
    return strtoll(value, NULL, 10);
}

static void put(const char *key, long long to) {
    const int length = snprintf(value, sizeof value, "%lld", to);
    sledge_kv_set(bucket(), key, strlen(key), value, (size_t)length, NULL);
}

static void nap(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

// Lines of another function's input are separated by `;` here.
static size_t lines_of(char *text) {
    for (char *at = text; *at != 0; at++) {
        *at = *at == ';' ? '\n' : *at;
    }
    return strlen(text);
}

static void answer(int32_t got) {
    if (got < 0) {
        printf("error %d\n", -got);
        return;
    }
    for (int32_t at = 0; at < got; at++) {
        value[at] = value[at] == '\n' ? ';' : value[at];
    }
    printf("%.*s\n", (int)got, value);
}

static void carry_out(const char *word, const char *name, const char *given) {
    static char text[1 << 16];
    snprintf(text, sizeof text, "%s", given);
    const size_t length = strlen(name);
    uint64_t version = 0;
    int64_t sum = 0;
    if (strcmp(word, "get") == 0) {
        const int32_t got = sledge_kv_get(bucket(), name, length, value, VALUE_MAX, &version);
        if (got < 0) {
            tell("", got);
        } else {
            printf("%s %.*s\n", version >> 63 ? "own" : "stored", (int)got, value);
        }
    } else if (strcmp(word, "set") == 0) {
        tell("set", sledge_kv_set(bucket(), name, length, text, strlen(text), &version));
    } else if (strcmp(word, "fill") == 0) {
        tell("fill", sledge_kv_set(bucket(), name, length, value, (size_t)atol(text), &version));
    } else if (strcmp(word, "delete") == 0) {
        tell("delete", sledge_kv_delete(bucket(), name, length));
    } else if (strcmp(word, "add") == 0) {
        tell("add", sledge_kv_increment(bucket(), name, length, strtoll(text, NULL, 10), NULL));
    } else if (strcmp(word, "sum") == 0) {
        tell("sum", sledge_kv_increment(bucket(), name, length, strtoll(text, NULL, 10), &sum));
        printf("%lld\n", (long long)sum);
    } else if (strcmp(word, "swap") == 0) {
        // With the version that it has now, and with one that nothing has.
        sledge_kv_get(bucket(), name, length, value, VALUE_MAX, &version);
        const int32_t swapped = sledge_kv_compare_and_swap(bucket(), name, length, version, text, strlen(text), NULL);
        const int32_t again = sledge_kv_compare_and_swap(bucket(), name, length, version + 12345, text, strlen(text), NULL);
        printf("swap %d %d\n", swapped, again);
    } else if (strcmp(word, "list") == 0) {
        const int32_t count = sledge_kv_list_keys(bucket(), name, length, text, strlen(text), value, sizeof value);
        printf("keys");
        const char *next = value;
        for (int32_t index = 0; index < count; index++) {
            uint32_t bytes;
            memcpy(&bytes, next, 4);
            printf(" %.*s", (int)bytes, next + 4);
            next += 4 + bytes;
        }
        printf("\n");
    } else if (strcmp(word, "values") == 0) {
        // Both at the same moment.
        const sledge_kv_key keys[2] = {{name, length}, {text, strlen(text)}};
        sledge_kv_found found[2];
        sledge_kv_get_many(bucket(), keys, 2, found, value, sizeof value);
        for (int index = 0; index < 2; index++) {
            const int none = found[index].length == SLEDGE_KV_NOTHING;
            printf(index == 0 ? "values %.*s" : " %.*s\n", none ? 1 : (int)found[index].length, none ? "-" : value + found[index].offset);
        }
    } else if (strcmp(word, "move") == 0) {
        // `move FROM TO COUNT PAUSE`: reads both, waits, writes both.
        char to[64] = "";
        long count = 0, pause = 0;
        sscanf(text, "%63s %ld %ld", to, &count, &pause);
        const long long from_before = number(name), to_before = number(to);
        nap(pause);
        put(name, from_before - count);
        put(to, to_before + count);
        printf("moved\n");
    } else if (strcmp(word, "total") == 0) {
        long long total = 0;
        for (long index = 0; index < atol(name); index++) {
            char key[32];
            snprintf(key, sizeof key, "a%ld", index);
            total += number(key);
            if (index % 4 == 3) {
                nap(atol(text));
            }
        }
        printf("total %lld\n", total);
    } else if (strcmp(word, "next") == 0) {
        // Reads, waits, writes one more.
        const long long before = number(name);
        nap(atol(text));
        put(name, before + 1);
        printf("next %lld\n", before + 1);
    } else if (strcmp(word, "unequal") == 0) {
        // Never true in any state that there was.
        const long long one = number(name);
        nap(2);
        if (one != number(text)) {
            __builtin_trap();
        }
        printf("equal\n");
    } else if (strcmp(word, "pause") == 0) {
        nap(atol(name));
        printf("paused\n");
    } else if (strcmp(word, "spin") == 0) {
        // What has no formula, so that no compiler leaves it out.
        uint64_t state = 1;
        for (uint64_t left = strtoull(name, NULL, 10) * 1000; left > 0; left--) {
            state = (state * 6364136223846793005) ^ left;
        }
        printf("spun %d\n", (int)(state & 1));
    } else if (strcmp(word, "exit") == 0) {
        fflush(stdout);
        exit(atoi(name));
    } else if (strcmp(word, "trap") == 0) {
        __builtin_trap();
    } else if (strcmp(word, "stream") == 0) {
        fflush(stdout);
        printf("stream %d\n", sledge_stream(-1));
        fflush(stdout);
    } else if (strcmp(word, "flood") == 0) {
        memset(value, 'x', sizeof value);
        for (long left = atol(name); left > 0; left -= (long)sizeof value) {
            sledge_write_reply(value, left < (long)sizeof value ? (size_t)left : sizeof value);
        }
    } else if (strcmp(word, "invoke") == 0) {
        answer(sledge_invoke(name, length, text, lines_of(text), value, sizeof value));
    } else if (strcmp(word, "both") == 0) {
        // Two calls at the same time, of the same.
        const int32_t one = sledge_start(name, length, text, lines_of(text)), other = sledge_start(name, length, text, strlen(text));
        answer(sledge_wait(one, value, sizeof value));
        answer(sledge_wait(other, value, sizeof value));
    } else if (strcmp(word, "send") == 0) {
        tell("sent", sledge_send(name, length, text, lines_of(text)));
    } else if (strcmp(word, "fetch") == 0) {
        printf("fetch %d\n", sledge_fetch_send("GET", 3, name, length, NULL, 0, NULL, 0, NULL) >= 0);
    } else if (strcmp(word, "post") == 0) {
        // `post URL BODY`: the status, and whether the request was recorded.
        const int32_t request = sledge_fetch_send("POST", 4, name, length, NULL, 0, text, strlen(text), NULL);
        if (request < 0) {
            printf("error %d\n", -request);
            return;
        }
        const int32_t status = sledge_fetch_status(request), rows = sledge_fetch_headers(request, value, sizeof value);
        bool is_recorded = false;
        for (int32_t at = 0; at + 13 <= rows; at++) {
            is_recorded = is_recorded || memcmp(value + at, "sledge-outbox", 13) == 0;
        }
        printf("posted %d %s %d\n", status, is_recorded ? "recorded" : "sent", sledge_fetch_read(request, value, sizeof value));
    } else if (strcmp(word, "body") == 0) {
        // The rest of the line is not looked at.
        printf("body\n");
    } else {
        printf("what?\n");
    }
}

int main(void) {
    return each_line(carry_out);
}
