/* image-classify: a picture in, what is on it out.
 *
 * Standard input: a portable pixmap (P6) of 32 x 32 pixels. Standard output: the classes, the most probable first, each with its
 * probability. Anything else on the input: a line on standard error, exit status 1 and no output.
 *
 * The network has the shape of the CIFAR-10 example in CMSIS-NN; its weights (network.h) come from benches/src/network.rs. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "layers.h"
#include "network.h"

enum {
    SIDE = 32,
    COLOURS = 3,
    FILTERS1 = 32,
    FILTERS2 = 16,
    FILTERS3 = 32,
    FEATURES = SIDE / 8 * (SIDE / 8) * FILTERS3,
    CLASSES = 10,
    BODY_BYTES_MAX = 8192, /* the pixels and a head with comments */
};

_Static_assert(sizeof conv1_weights == FILTERS1 * ROW(KERNEL * KERNEL * COLOURS), "network.h has another shape");
_Static_assert(sizeof conv2_weights == FILTERS2 * ROW(KERNEL * KERNEL * FILTERS1), "network.h has another shape");
_Static_assert(sizeof conv3_weights == FILTERS3 * ROW(KERNEL * KERNEL * FILTERS2), "network.h has another shape");
_Static_assert(sizeof full_weights == CLASSES * FEATURES, "network.h has another shape");

static int fail(const char *text) {
    fprintf(stderr, "image-classify: %s\n", text);
    return 1;
}

/* Skips blanks and comments, reads a number and moves *next behind it. -1 if there is none, or one above 65535. */
static int read_number(const uint8_t **next, const uint8_t *end) {
    bool comment = false;
    while (*next < end && (comment || **next == '#' || **next == ' ' || (**next >= '\t' && **next <= '\r'))) {
        comment = (comment || **next == '#') && **next != '\n' && **next != '\r';
        ++*next;
    }
    int number = -1;
    for (; *next < end && **next >= '0' && **next <= '9' && number <= UINT16_MAX; ++*next) {
        number = (number < 0 ? 0 : number) * 10 + (**next - '0');
    }
    return number > UINT16_MAX ? -1 : number;
}

/* The pixels of a pixmap, or null and what is wrong with it. */
static const uint8_t *read_pixmap(const uint8_t *body, size_t length, const char **wrong) {
    if (length < 2 || body[0] != 'P' || body[1] != '6') {
        *wrong = "the body is no portable pixmap: it has to begin with P6 (pngtopnm makes one)";
        return NULL;
    }
    const uint8_t *next = body + 2, *end = body + length;
    const int width = read_number(&next, end), height = read_number(&next, end), brightest = read_number(&next, end);
    if (width != SIDE || height != SIDE || brightest != UINT8_MAX) {
        *wrong = "the pixmap has to have 32 x 32 pixels of three bytes (32 32 255)";
        return NULL;
    }
    if (end - next != 1 + SIDE * SIDE * COLOURS) {
        *wrong = "the body has to end with the pixmap: a blank and 3072 bytes behind the head";
        return NULL;
    }
    return next + 1;
}

/* Scores, times 2 to the power of full_scale. */
static void classify(const uint8_t *pixels, int32_t scores[CLASSES]) {
    static int8_t picture[MARGINED(SIDE) * MARGINED(SIDE) * COLOURS], seen1[SIDE * SIDE * FILTERS1];
    static int8_t half[MARGINED(SIDE / 2) * MARGINED(SIDE / 2) * FILTERS1], seen2[SIDE / 2 * SIDE / 2 * FILTERS2];
    static int8_t quarter[MARGINED(SIDE / 4) * MARGINED(SIDE / 4) * FILTERS2], seen3[SIDE / 4 * SIDE / 4 * FILTERS3];
    static int8_t features[FEATURES];
    /* The mean of each colour is 0 to the network. */
    for (int colour = 0; colour < COLOURS; colour++) {
        int sum = 0;
        for (int i = 0; i < SIDE * SIDE; i++) {
            sum += pixels[i * COLOURS + colour];
        }
        for (int i = 0; i < SIDE * SIDE; i++) {
            const int value = pixels[i * COLOURS + colour] - sum / (SIDE * SIDE);
            const int at = (i / SIDE + MARGIN) * MARGINED(SIDE) + i % SIDE + MARGIN;
            picture[at * COLOURS + colour] = (int8_t)(value < INT8_MIN ? INT8_MIN : value > INT8_MAX ? INT8_MAX : value);
        }
    }
    convolve(picture, SIDE, COLOURS, conv1_weights, conv1_bias, FILTERS1, conv1_shift, seen1);
    pool(seen1, SIDE, FILTERS1, half, MARGIN);
    convolve(half, SIDE / 2, FILTERS1, conv2_weights, conv2_bias, FILTERS2, conv2_shift, seen2);
    pool(seen2, SIDE / 2, FILTERS2, quarter, MARGIN);
    convolve(quarter, SIDE / 4, FILTERS2, conv3_weights, conv3_bias, FILTERS3, conv3_shift, seen3);
    pool(seen3, SIDE / 4, FILTERS3, features, 0);
    connect(features, FEATURES, full_weights, full_bias, CLASSES, scores);
}

int main(void) {
    static uint8_t body[BODY_BYTES_MAX + 1];
    const size_t length = fread(body, 1, sizeof body, stdin);
    if (ferror(stdin)) {
        return fail("the body cannot be read");
    }
    if (length > BODY_BYTES_MAX) {
        return fail("the body has more than 8192 bytes");
    }
    const char *wrong = NULL;
    const uint8_t *pixels = read_pixmap(body, length, &wrong);
    if (pixels == NULL) {
        return fail(wrong);
    }
    int32_t scores[CLASSES];
    classify(pixels, scores);

    int order[CLASSES]; /* the highest score first */
    for (int i = 0; i < CLASSES; i++) {
        int place = i;
        for (; place > 0 && scores[order[place - 1]] < scores[i]; place--) {
            order[place] = order[place - 1];
        }
        order[place] = i;
    }
    float shares[CLASSES], sum = 0;
    for (int i = 0; i < CLASSES; i++) {
        shares[i] = expf(ldexpf((float)(scores[order[i]] - scores[order[0]]), -full_scale));
        sum += shares[i];
    }
    for (int i = 0; i < CLASSES; i++) {
        const int thousandths = (int)(shares[i] / sum * 1000 + 0.5f);
        printf("%s %d.%03d\n", classes[order[i]], thousandths / 1000, thousandths % 1000);
    }
    return fflush(stdout) == 0 ? 0 : fail("the reply cannot be written");
}
