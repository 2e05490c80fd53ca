// Calls the function `ping` as often as the first byte of its input says.
#include <stdint.h>
#include <unistd.h>

#include "../../sdk/c/sledge.h"

int main(void) {
    uint8_t times;
    char reply;
    if (read(STDIN_FILENO, &times, sizeof times) != sizeof times) {
        return 1;
    }
    for (int index = 0; index < times; index++) {
        if (sledge_invoke("ping", 4, NULL, 0, &reply, sizeof reply) != sizeof reply) {
            return 2;
        }
    }
    return 0;
}
