// Invokes the function `empty` many times; replies with the median time of one, call to result, in nanoseconds.
#include "../../sdk/c/sledge.h"
#include "median.h"

int main(void) {
    for (int index = 0; index < TIMES; index++) {
        const int64_t start = now();
        if (sledge_invoke("empty", 5, NULL, 0, NULL, 0) != 0) {
            return 2;
        }
        times[index] = now() - start;
    }
    print_median();
    return 0;
}
