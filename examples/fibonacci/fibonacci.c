/* fibonacci: a number n in, the n-th Fibonacci number out, computed in the slowest way: a function that does nothing but call itself,
 * so that n says how long a request takes.
 *
 * Anything else on the input: a line on standard error, exit status 1 and no output. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { INDEX_MAX = 50 };

static uint64_t fibonacci(unsigned n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

/* Digits, and perhaps the end of a line. False if it is anything else, or too large. */
static bool read_index(unsigned *index) {
    int byte = getchar(), digits = 0;
    *index = 0;
    for (; byte >= '0' && byte <= '9' && *index <= INDEX_MAX; byte = getchar(), digits++) {
        *index = *index * 10 + (unsigned)(byte - '0');
    }
    while (byte == '\r' || byte == '\n') {
        byte = getchar();
    }
    return digits > 0 && byte == EOF && *index <= INDEX_MAX;
}

int main(void) {
    unsigned index;
    if (!read_index(&index)) {
        fputs("fibonacci: the body has to be a number from 0 to 50\n", stderr);
        return 1;
    }
    return printf("%" PRIu64 "\n", fibonacci(index)) > 0 && fflush(stdout) == 0 ? 0 : 1;
}
