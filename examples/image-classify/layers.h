/* Layers of a convolutional network in 8-bit numbers, whose sums of products have 32 bits.
 *
 * Pictures are rows of pixels, the channels of a pixel side by side. What a convolution reads has a margin of zeros, so that no pixel is
 * a special case; rows of weights have a multiple of 16 numbers, so that whole vectors fit. All sizes are constants where the layers
 * are called, and known once the calls are inlined. */
#ifndef IMAGE_CLASSIFY_LAYERS_H
#define IMAGE_CLASSIFY_LAYERS_H

#include <stdint.h>
#include <string.h>

enum {
    KERNEL = 5,
    MARGIN = KERNEL / 2,
    POOL = 3,
    VECTOR = 16,
    PATCH_MAX = 1024,
};

#define MARGINED(side) ((side) + 2 * MARGIN)
#define ROW(numbers) (((numbers) + VECTOR - 1) / VECTOR * VECTOR)

static inline int32_t dot(const int8_t *a, const int8_t *b, int length) {
    int32_t sum = 0;
    for (int i = 0; i < length; i++) {
        sum += (int32_t)a[i] * b[i];
    }
    return sum;
}

/* The next layer's input: the sum with fewer bits, rounded, and 0 where it is negative (ReLU). */
static inline int8_t narrow(int32_t sum, int shift) {
    const int32_t value = (sum + (1 << (shift - 1))) >> shift;
    return (int8_t)(value < 0 ? 0 : value > INT8_MAX ? INT8_MAX : value);
}

/* From a picture with a margin to one without, of `filters` channels. `weights` has a row for each filter. */
static inline void convolve(const int8_t *in, int side, int channels, const int8_t *weights, const int32_t *bias, int filters, int shift,
                            int8_t *out) {
    const int across = KERNEL * channels, row = ROW(KERNEL * across);
    static int8_t patch[PATCH_MAX];
    memset(patch + KERNEL * across, 0, (size_t)(row - KERNEL * across));
    for (int y = 0; y < side; y++) {
        for (int x = 0; x < side; x++) {
            for (int i = 0; i < KERNEL; i++) {
                memcpy(patch + i * across, in + ((y + i) * MARGINED(side) + x) * channels, (size_t)across);
            }
            for (int filter = 0; filter < filters; filter++) {
                *out++ = narrow(bias[filter] + dot(patch, weights + filter * row, row), shift);
            }
        }
    }
}

/* The maximum of 3 x 3 pixels around every second one, or of what there is of them: from a picture without a margin to one with
 * `margin`, of half the side. What the margin holds stays. */
static inline void pool(const int8_t *in, int side, int channels, int8_t *out, int margin) {
    const int half = side / 2;
    for (int y = 0; y < half; y++) {
        for (int x = 0; x < half; x++) {
            int8_t *to = out + ((y + margin) * (half + 2 * margin) + x + margin) * channels;
            memset(to, 0, (size_t)channels); /* nothing is less, behind ReLU */
            for (int v = 2 * y; v < 2 * y + POOL && v < side; v++) {
                for (int u = 2 * x; u < 2 * x + POOL && u < side; u++) {
                    const int8_t *from = in + (v * side + u) * channels;
                    for (int channel = 0; channel < channels; channel++) {
                        to[channel] = from[channel] > to[channel] ? from[channel] : to[channel];
                    }
                }
            }
        }
    }
}

/* A sum for each row of weights. */
static inline void connect(const int8_t *in, int length, const int8_t *weights, const int32_t *bias, int rows, int32_t *out) {
    for (int row = 0; row < rows; row++) {
        out[row] = bias[row] + dot(in, weights + row * length, length);
    }
}

#endif
