// Does what its input says, as a function of MXFaaS's suite would: accesses the key-value store, computes between them, calls others.
//
// The input is numbers (u32, little-endian): how many rounds of computing, accesses and calls; for each access a key, with the highest bit if it is
// written, and the value's length; for each call the number of words of its input, and these. CALLED, from the environment, is what the called functions'
// names begin with; the first is called CALLED1. A request computes over what was initialised, STATE_KIB of it. The reply is the number of bytes that were read, as a u64.
//
// Here and in benches/src/sharing/modelled.rs.
#include <stdio.h>

#include "../../sdk/c/sledge.h"

enum {
    WORDS_MAX = 4096,
    VALUE_BYTES_MAX = 64 << 10,
    NAME_BYTES_MAX = 32,
};
#define WRITTEN UINT32_C(0x80000000)

static uint64_t *state;
static uint32_t state_words;

__attribute__((constructor)) static void initialise(void) {
    const char *text = getenv("STATE_KIB");
    const uint32_t words = (text == NULL ? 64 : (uint32_t)atoi(text)) * 128;
    state = malloc(words * sizeof *state);
    uint64_t value = 1;
    for (uint32_t at = 0; state != NULL && at < words; at++) {
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        state[at] = value;
    }
    state_words = state == NULL ? 0 : words;
}

static uint64_t compute(uint64_t value, uint32_t rounds) {
    for (uint32_t round = 0; round < rounds; round++) {
        value = value * UINT64_C(6364136223846793005) + state[(value >> 40) % state_words];
    }
    return value;
}

// The key's number, again and again.
static int is_value(const uint32_t *value, uint32_t bytes, uint32_t key) {
    return bytes >= sizeof *value && value[0] == key && value[bytes / sizeof *value - 1] == key;
}

static int access_store(int32_t bucket, uint32_t number, uint32_t bytes, uint64_t *total) {
    static uint32_t value[VALUE_BYTES_MAX / sizeof(uint32_t)];
    const uint32_t key = number & ~WRITTEN;
    char name[NAME_BYTES_MAX];
    const size_t length = (size_t)snprintf(name, sizeof name, "blob-%u", (unsigned)key);
    if (bytes > sizeof value) {
        return 0;
    }
    if ((number & WRITTEN) == 0) {
        *total += bytes;
        return sledge_kv_get(bucket, name, length, value, sizeof value, NULL) == (int32_t)bytes && is_value(value, bytes, key);
    }
    for (uint32_t at = 0; at < bytes / sizeof *value; at++) {
        value[at] = key;
    }
    return sledge_kv_set(bucket, name, length, value, bytes, NULL) == 0;
}

SLEDGE_HANDLE {
    static uint32_t input[WORDS_MAX];
    size_t length;
    if (state == NULL || sledge_read_body(input, sizeof input, &length) != SLEDGE_OK || length < 3 * sizeof *input) {
        return SLEDGE_FAILED;
    }
    const uint32_t words = (uint32_t)(length / sizeof *input), rounds = input[0], accesses = input[1], calls = input[2];
    const int32_t bucket = sledge_kv_open("sharing", 7);
    uint64_t total = 0, value = 1;
    uint32_t at = 3;
    if (accesses > (words - at) / 2) {
        return SLEDGE_FAILED;
    }
    // Between accesses, and before and behind them.
    const uint32_t part = rounds / (accesses + 1);
    for (uint32_t done = 0; done < accesses; done++, at += 2) {
        value = compute(value, part);
        if (!access_store(bucket, input[at], input[at + 1], &total)) {
            return SLEDGE_FAILED;
        }
    }
    value = compute(value, rounds - part * accesses);
    const char *called = getenv("CALLED");
    for (uint32_t call = 1; call <= calls; call++) {
        char name[NAME_BYTES_MAX];
        const size_t name_length = (size_t)snprintf(name, sizeof name, "%s%u", called == NULL ? "" : called, (unsigned)call);
        uint64_t read = 0;
        if (at >= words || input[at] > words - at - 1) {
            return SLEDGE_FAILED;
        }
        if (sledge_invoke(name, name_length, &input[at + 1], input[at] * sizeof *input, &read, sizeof read) != sizeof read) {
            return SLEDGE_FAILED;
        }
        total += read;
        at += 1 + input[at];
    }
    // So that computing is not left out.
    if (value == 0) {
        total++;
    }
    return sledge_write_reply(&total, sizeof total);
}
