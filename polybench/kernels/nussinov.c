/* nussinov: the greatest number of base pairs in the folding of an RNA sequence of N bases, by dynamic programming, in
 * integers.
 *
 *     table[i][j] = the greatest of table[i][j - 1],  table[i + 1][j],
 *                   table[i + 1][j - 1] + (1 if i < j - 1 and bases i and j are complementary),
 *                   table[i][k] + table[k + 1][j] for i < k < j
 * Initial values (all indices from 0):
 *     bases[i] = (i + 1) mod 4, of which 0 and 3, 1 and 2 are complementary;  table = 0 */
#include "../polybench.h"

#define N PB_SIZE(60, 180, 500, 2500, 5500)

static inline int pairs(char one, char other) {
    return one + other == 3 ? 1 : 0;
}

static inline int greater(int one, int other) {
    return one >= other ? one : other;
}

static void init(char bases[N], int table[N][N]) {
    for (int i = 0; i < N; i++) {
        bases[i] = (char)((i + 1) % 4);
        for (int j = 0; j < N; j++) {
            table[i][j] = 0;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_nussinov(char bases[restrict N], int table[restrict N][N]) {
    for (int i = N - 1; i >= 0; i--) {
        for (int j = i + 1; j < N; j++) {
            if (j - 1 >= 0) {
                table[i][j] = greater(table[i][j], table[i][j - 1]);
            }
            if (i + 1 < N) {
                table[i][j] = greater(table[i][j], table[i + 1][j]);
            }
            if (j - 1 >= 0 && i + 1 < N) {
                /* Neighbours are too close to pair. */
                if (i < j - 1) {
                    table[i][j] = greater(table[i][j], table[i + 1][j - 1] + pairs(bases[i], bases[j]));
                } else {
                    table[i][j] = greater(table[i][j], table[i + 1][j - 1]);
                }
            }
            for (int k = i + 1; k < j; k++) {
                table[i][j] = greater(table[i][j], table[i][k] + table[k + 1][j]);
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "nussinov", argc, argv);
    char *bases = pb_array(N, sizeof(char));
    int(*table)[N] = pb_array((size_t)N * N, sizeof(int));
    init(bases, table);

    pb_start(&run);
    kernel_nussinov(bases, table);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = i; j < N; j++) {
            pb_element(&run, table[i][j]);
        }
    }
    return pb_end(&run);
}
