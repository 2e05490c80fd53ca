// Gets a value of 100 bytes once and replies with one byte. With a body it sets the value first.
#include <unistd.h>

#include "../../sdk/c/sledge.h"

int main(void) {
    static char value[100];
    char byte;
    const int32_t bucket = sledge_kv_open("bench", 5);
    if (read(STDIN_FILENO, &byte, sizeof byte) == sizeof byte
        && sledge_kv_set(bucket, "key", 3, value, sizeof value, NULL) != 0) {
        return 1;
    }
    if (sledge_kv_get(bucket, "key", 3, value, sizeof value, NULL) != sizeof value) {
        return 2;
    }
    return write(STDOUT_FILENO, "r", 1) == 1 ? 0 : 3;
}
