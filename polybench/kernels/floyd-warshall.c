/* floyd-warshall: the lengths of the shortest paths between all pairs of N nodes, in integers.
 *
 *     for each k:  path[i][j] := min(path[i][j], path[i][k] + path[k][j])
 * Initial values (all indices from 0):
 *     path[i][j] = 999, no edge, if i + j is divisible by 7, 11 or 13; otherwise i*j mod 7 + 1 */
#include "../polybench.h"

#define N PB_SIZE(60, 180, 500, 2800, 5600)

static void init(int path[N][N]) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            const int none = (i + j) % 13 == 0 || (i + j) % 7 == 0 || (i + j) % 11 == 0;
            path[i][j] = none ? 999 : i * j % 7 + 1;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_floyd_warshall(int path[restrict N][N]) {
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < N; j++) {
                path[i][j] = path[i][j] < path[i][k] + path[k][j] ? path[i][j] : path[i][k] + path[k][j];
            }
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "floyd-warshall", argc, argv);
    int(*path)[N] = pb_array((size_t)N * N, sizeof(int));
    init(path);

    pb_start(&run);
    kernel_floyd_warshall(path);
    pb_stop(&run);

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            pb_element(&run, path[i][j]);
        }
    }
    return pb_end(&run);
}
