/* deriche: edge detection, a recursive Gaussian filter in single precision: first along the columns' index, then along
 * the rows' index, each forwards and backwards. The image is W x H.
 *
 *     forwards   y1[n] = a1 x[n] + a2 x[n-1] + b1 y1[n-1] + b2 y1[n-2]
 *     backwards  y2[n] = a3 x[n+1] + a4 x[n+2] + b1 y2[n+1] + b2 y2[n+2]
 *     and y1 + y2 is the result; the second direction has a5..a8 for a1..a4.
 *     e = exp(-alpha),  k = (1 - e)^2 / (1 + 2 alpha e - exp(2 alpha)),  b1 = 2^-alpha,  b2 = -exp(-2 alpha)
 *     a1 = a5 = k,  a2 = a6 = k e (alpha - 1),  a3 = a7 = k e (alpha + 1),  a4 = a8 = -k exp(-2 alpha)
 * Initial values (all indices from 0):
 *     alpha = 0.25
 *     image[i][j] = ((313*i + 991*j) mod 65536) / 65535 */
#include <math.h>

#include "../polybench.h"

#define W PB_SIZE(64, 192, 720, 4096, 7680)
#define H PB_SIZE(64, 128, 480, 2160, 4320)

static void init(float image[W][H]) {
    for (int i = 0; i < W; i++) {
        for (int j = 0; j < H; j++) {
            image[i][j] = (float)((313 * i + 991 * j) % 65536) / 65535.0f;
        }
    }
}

/* Not inlined, so that the compiler sees neither the initial values nor what becomes of the result. */
__attribute__((noinline)) static void kernel_deriche(float alpha, float image[restrict W][H],
                                                     float edges[restrict W][H],
                                                     float y1[restrict W][H],
                                                     float y2[restrict W][H]) {
    const float e = expf(-alpha);
    const float k = (1.0f - e) * (1.0f - e) / (1.0f + 2.0f * alpha * e - expf(2.0f * alpha));
    const float a1 = k, a5 = k;
    const float a2 = k * e * (alpha - 1.0f), a6 = a2;
    const float a3 = k * e * (alpha + 1.0f), a7 = a3;
    const float a4 = -k * expf(-2.0f * alpha), a8 = a4;
    const float b1 = powf(2.0f, -alpha);
    const float b2 = -expf(-2.0f * alpha);
    const float c1 = 1.0f, c2 = 1.0f;

    for (int i = 0; i < W; i++) {
        float x_1 = 0.0f, y_1 = 0.0f, y_2 = 0.0f;
        for (int j = 0; j < H; j++) {
            y1[i][j] = a1 * image[i][j] + a2 * x_1 + b1 * y_1 + b2 * y_2;
            x_1 = image[i][j];
            y_2 = y_1;
            y_1 = y1[i][j];
        }
    }
    for (int i = 0; i < W; i++) {
        float x_1 = 0.0f, x_2 = 0.0f, y_1 = 0.0f, y_2 = 0.0f;
        for (int j = H - 1; j >= 0; j--) {
            y2[i][j] = a3 * x_1 + a4 * x_2 + b1 * y_1 + b2 * y_2;
            x_2 = x_1;
            x_1 = image[i][j];
            y_2 = y_1;
            y_1 = y2[i][j];
        }
    }
    for (int i = 0; i < W; i++) {
        for (int j = 0; j < H; j++) {
            edges[i][j] = c1 * (y1[i][j] + y2[i][j]);
        }
    }
    for (int j = 0; j < H; j++) {
        float x_1 = 0.0f, y_1 = 0.0f, y_2 = 0.0f;
        for (int i = 0; i < W; i++) {
            y1[i][j] = a5 * edges[i][j] + a6 * x_1 + b1 * y_1 + b2 * y_2;
            x_1 = edges[i][j];
            y_2 = y_1;
            y_1 = y1[i][j];
        }
    }
    for (int j = 0; j < H; j++) {
        float x_1 = 0.0f, x_2 = 0.0f, y_1 = 0.0f, y_2 = 0.0f;
        for (int i = W - 1; i >= 0; i--) {
            y2[i][j] = a7 * x_1 + a8 * x_2 + b1 * y_1 + b2 * y_2;
            x_2 = x_1;
            x_1 = edges[i][j];
            y_2 = y_1;
            y_1 = y2[i][j];
        }
    }
    for (int i = 0; i < W; i++) {
        for (int j = 0; j < H; j++) {
            edges[i][j] = c2 * (y1[i][j] + y2[i][j]);
        }
    }
}

int main(int argc, char **argv) {
    static pb_run run;
    pb_begin(&run, "deriche", argc, argv);
    float(*image)[H] = pb_array((size_t)W * H, sizeof(float));
    float(*edges)[H] = pb_array((size_t)W * H, sizeof(float));
    float(*y1)[H] = pb_array((size_t)W * H, sizeof(float));
    float(*y2)[H] = pb_array((size_t)W * H, sizeof(float));
    init(image);

    pb_start(&run);
    kernel_deriche(0.25f, image, edges, y1, y2);
    pb_stop(&run);

    for (int i = 0; i < W; i++) {
        for (int j = 0; j < H; j++) {
            pb_element(&run, edges[i][j]);
        }
    }
    return pb_end(&run);
}
