// Gets a value of 100 bytes many times; replies with the median time of one, call to result, in nanoseconds.
#include "../../sdk/c/sledge.h"
#include "median.h"

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
    print_median();
    return 0;
}
