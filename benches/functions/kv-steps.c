// Asks the key-value store so often as its input says, one get after the other, and computes between them: two numbers (u32, little-endian), accesses and rounds of
// computing in all. With WRITES in place of the accesses it stores what others get. The reply is "done".
#include "../../sdk/c/sledge.h"

#define WRITES UINT32_C(0xffffffff)
enum { VALUE_BYTES = 1000 };

static uint64_t compute(uint64_t value, uint32_t rounds) {
    for (uint32_t round = 0; round < rounds; round++) {
        value = (value ^ (value >> 29)) * UINT64_C(6364136223846793005) + round;
    }
    return value;
}

SLEDGE_HANDLE {
    static char value[VALUE_BYTES];
    uint32_t input[2];
    size_t length;
    if (sledge_read_body(input, sizeof input, &length) != SLEDGE_OK || length != sizeof input) {
        return SLEDGE_FAILED;
    }
    const int32_t bucket = sledge_kv_open("bench", 5);
    if (input[0] == WRITES) {
        return sledge_kv_set(bucket, "step", 4, value, sizeof value, NULL) == 0 ? sledge_write_reply("done", 4) : SLEDGE_FAILED;
    }
    const uint32_t part = input[1] / (input[0] + 1);
    uint64_t result = compute(1, part);
    for (uint32_t step = 0; step < input[0]; step++) {
        if (sledge_kv_get(bucket, "step", 4, value, sizeof value, NULL) != VALUE_BYTES) {
            return SLEDGE_FAILED;
        }
        result = compute(result, part);
    }
    // So that computing is not left out.
    return result == 0 ? SLEDGE_FAILED : sledge_write_reply("done", 4);
}
