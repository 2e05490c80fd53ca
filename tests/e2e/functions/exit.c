// Replies with its input, upper case, and ends with the status that its first argument says; without one, with 0.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int byte;
    while ((byte = getchar()) != EOF) {
        putchar(toupper(byte));
    }
    fprintf(stderr, "to the log\n");
    exit(argc > 1 ? atoi(argv[1]) : 0);
}
