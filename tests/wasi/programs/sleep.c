// Sleeps for as many milliseconds as the body says, and says that it has.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(void) {
    char text[16] = {0};
    fread(text, 1, sizeof text - 1, stdin);
    long milliseconds = atol(text);
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    if (nanosleep(&time, NULL) != 0) return 1;
    puts("slept");
}
