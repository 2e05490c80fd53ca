/* Matching: which glyph of which font a shape is, given how large the line's letters are and where they stand. */
#ifndef OCR_MATCH_H
#define OCR_MATCH_H

#include <math.h>

#include "glyphs.h"
#include "shape.h"

#define COST_BAD 0.18f /* what matches worse than this is probably two characters that touch */

/* How a line is set, as far as it is known: a size of 0 is not. */
typedef struct {
    float em, baseline; /* pixels */
    int font;           /* or -1 */
} setting;

typedef struct {
    const glyph *glyph;
    float cost;
} match;

/* A shape stretched to GLYPH_SIDE x GLYPH_SIDE; the share of ink in each field, from 0 to 1. */
typedef struct {
    float ink[GLYPH_SIDE * GLYPH_SIDE];
} raster;

static void raster_of(const page *page, box box, raster *to) {
    const float side = (float)GLYPH_SIDE;
    const float width = (float)(box.right - box.left) / side, height = (float)(box.bottom - box.top) / side;
    for (int row = 0; row < GLYPH_SIDE; row++) {
        const float top = (float)row * height, bottom = top + height;
        for (int column = 0; column < GLYPH_SIDE; column++) {
            const float left = (float)column * width, right = left + width;
            float sum = 0;
            for (int y = (int)top; (float)y < bottom && box.top + y < box.bottom; y++) {
                const float high = fminf((float)y + 1, bottom) - fmaxf((float)y, top);
                const uint8_t *ink = page->ink + (size_t)(box.top + y) * (size_t)page->width + box.left;
                for (int x = (int)left; (float)x < right && box.left + x < box.right; x++) {
                    if (ink[x] != 0) {
                        sum += high * (fminf((float)x + 1, right) - fmaxf((float)x, left));
                    }
                }
            }
            to->ink[row * GLYPH_SIDE + column] = sum / (width * height);
        }
    }
}

/* The mean difference of the fields, from 0 to 1; gives up above `limit`. */
static float raster_difference(const raster *raster, const glyph *glyph, float limit) {
    float sum = 0;
    limit *= GLYPH_SIDE * GLYPH_SIDE;
    for (int i = 0; i < GLYPH_SIDE * GLYPH_SIDE && sum <= limit; i += GLYPH_SIDE) {
        for (int j = i; j < i + GLYPH_SIDE; j++) {
            const int level = glyph->ink[j] <= '9' ? glyph->ink[j] - '0' : glyph->ink[j] - 'a' + 10;
            sum += fabsf(raster->ink[j] - (float)level * (1.0f / 15));
        }
    }
    return sum * (1.0f / (GLYPH_SIDE * GLYPH_SIDE));
}

/* The best glyph for what is in a box. */
static match match_box(const page *page, box box, const setting *setting) {
    raster raster;
    raster_of(page, box, &raster);
    const float width = (float)(box.right - box.left), height = (float)(box.bottom - box.top);
    match best = {NULL, INFINITY};
    for (size_t i = 0; i < sizeof glyphs / sizeof *glyphs; i++) {
        const glyph *glyph = &glyphs[i];
        if (setting->font >= 0 && glyph->font != setting->font) {
            continue;
        }
        float cost = 0;
        if (setting->em > 0) {
            const float em = setting->em * 0.001f;
            const float wide = width - (float)glyph->width * em, high = height - (float)glyph->height * em;
            const float deep = (float)box.bottom - setting->baseline - (float)glyph->below * em;
            /* A pixel more or less is not the letter's. */
            cost = (fmaxf(fabsf(wide) - 1, 0) + fmaxf(fabsf(high) - 0.5f, 0) + fmaxf(fabsf(deep) - 0.5f, 0)) / setting->em;
        } else {
            cost = 0.3f * fabsf(logf(width * (float)glyph->height / (height * (float)glyph->width)));
        }
        if (cost < best.cost) {
            cost += raster_difference(&raster, glyph, best.cost - cost);
            best = cost < best.cost ? (match){glyph, cost} : best;
        }
    }
    return best;
}

static int float_order(const void *a, const void *b) {
    const float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

static float median(float *numbers, int count) {
    qsort(numbers, (size_t)count, sizeof *numbers, float_order);
    return numbers[count / 2];
}

/* Learns from a line's shapes, matched under `from`, how the line is set. `scratch` has room for as many numbers as shapes. Only glyphs of
 * some height say something about the size. */
static setting setting_of(const page *page, const shape *line, int count, const setting *from, float *scratch, float *cost) {
    setting learnt = *from;
    match *matches = malloc((size_t)count * sizeof *matches);
    int used = 0;
    *cost = INFINITY;
    if (matches == NULL) {
        return learnt;
    }
    *cost = 0;
    for (int i = 0; i < count; i++) {
        matches[i] = match_box(page, line[i].box, from);
        *cost += fminf(matches[i].cost, 2 * COST_BAD);
        if (matches[i].cost < COST_BAD && matches[i].glyph->height > 400) {
            scratch[used++] = (float)(line[i].box.bottom - line[i].box.top) * 1000 / (float)matches[i].glyph->height;
        }
    }
    if (used > 0) {
        learnt.em = median(scratch, used);
        used = 0;
        for (int i = 0; i < count; i++) {
            if (matches[i].cost < COST_BAD && matches[i].glyph->height > 400) {
                scratch[used++] = (float)line[i].box.bottom - (float)matches[i].glyph->below * learnt.em * 0.001f;
            }
        }
        learnt.baseline = median(scratch, used);
    }
    free(matches);
    return learnt;
}

#endif
