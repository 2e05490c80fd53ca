/* A command that says hello through libc, with 200 KB of data in five pages of memory. */
#include <stdio.h>

static volatile char data[200000] = {[0 ... 199999] = 7};

int main(void) {
    return printf("Hello, world! %d\n", data[123]) < 0;
}
