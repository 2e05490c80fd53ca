/* Tests of the function, natively: make test. */
#undef NDEBUG
#include "function.c"

#include <assert.h>

int main(void) {
    char greeting[64];
    assert(greet("Ada\n", 4, greeting, sizeof greeting) == 12 && strcmp(greeting, "Hello, Ada!\n") == 0);
    assert(greet("", 0, greeting, sizeof greeting) == 9 && strcmp(greeting, "Hello, !\n") == 0);
    puts("passed");
    return 0;
}
