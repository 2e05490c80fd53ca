// Gets a value many times from a store that is far away.
#include "../../sdk/c/sledge.h"

enum { TIMES = 400 };

int main(void) {
    static char value[100];
    const int32_t bucket = sledge_kv_open("bench", 5);
    for (int index = 0; index < TIMES; index++) {
        if (sledge_kv_get(bucket, "key", 3, value, sizeof value, NULL) != sizeof value) {
            return 1;
        }
    }
    return 0;
}
