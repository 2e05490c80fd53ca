// Prints its arguments and the environment variables that begin with TEST_, one a line, then what the clock and the random source give.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern char **environ;

int main(int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        printf("arg %s\n", argv[i]);
    }
    for (char **variable = environ; variable && *variable; variable++) {
        if (strncmp(*variable, "TEST_", 5) == 0) {
            printf("env %s\n", *variable);
        }
    }
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0 || now.tv_sec < 1700000000) {
        return 3;
    }
    unsigned char random[32] = {0}, zero[32] = {0};
    arc4random_buf(random, sizeof random);
    if (memcmp(random, zero, sizeof zero) == 0) {
        return 4;
    }
    return 0;
}
