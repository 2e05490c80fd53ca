// Gets four values and sets four others, then replies with one byte.
#include <unistd.h>

#include "../../sdk/c/sledge.h"

int main(void) {
    static char value[100];
    const int32_t bucket = sledge_kv_open("bench", 5);
    for (char key = 'a'; key < 'e'; key++) {
        // The first request finds none.
        sledge_kv_get(bucket, &key, 1, value, sizeof value, NULL);
    }
    for (char key = 'e'; key < 'i'; key++) {
        if (sledge_kv_set(bucket, &key, 1, value, sizeof value, NULL) != 0) {
            return 1;
        }
    }
    return write(STDOUT_FILENO, "r", 1) == 1 ? 0 : 2;
}
