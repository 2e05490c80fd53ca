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

enum {
    GLYPHS = sizeof glyphs / sizeof *glyphs,
    FIELDS = GLYPH_SIDE * GLYPH_SIDE,
    FIELDS_AT_ONCE = 64, /* are compared before it is asked whether that is enough */
    INK_MAX = 255,
};

/* A shape stretched to GLYPH_SIDE x GLYPH_SIDE; the share of ink in each field, from 0 to INK_MAX. */
typedef struct {
    uint8_t ink[FIELDS];
} raster;

/* What a box looks like, whatever its size. */
static float slimness(float width, float height) {
    return logf(height / width);
}

/* What is compared of the glyphs, in their order; there once `glyphs_read` was called. */
static struct {
    float width[GLYPHS], height[GLYPHS], below[GLYPHS]; /* ems */
    float slimness[GLYPHS];
    raster raster[GLYPHS];
} looks;

static void glyphs_read(void) {
    for (int i = 0; i < GLYPHS; i++) {
        const glyph *glyph = &glyphs[i];
        looks.width[i] = (float)glyph->width * 0.001f;
        looks.height[i] = (float)glyph->height * 0.001f;
        looks.below[i] = (float)glyph->below * 0.001f;
        looks.slimness[i] = slimness(looks.width[i], looks.height[i]);
        for (int j = 0; j < FIELDS; j++) {
            const char digit = glyph->ink[j];
            looks.raster[i].ink[j] = (uint8_t)((digit <= '9' ? digit - '0' : digit - 'a' + 10) * (INK_MAX / 15));
        }
    }
}

static void raster_of(const page *page, box box, raster *to) {
    static float ink[PAGE_SIDE_MAX + 1], before[PAGE_SIDE_MAX + 1]; /* of each column in a row of fields; of all columns before it */
    const int columns = box.right - box.left, rows = box.bottom - box.top;
    const float side = (float)GLYPH_SIDE;
    const float width = (float)columns / side, height = (float)rows / side; /* of a field */
    const float scale = (float)INK_MAX / (width * height);
    for (int row = 0; row < GLYPH_SIDE; row++) {
        const float top = (float)row * height, bottom = top + height;
        memset(ink, 0, sizeof *ink * (size_t)(columns + 1));
        for (int y = (int)top; y < rows && (float)y < bottom; y++) {
            const float high = fminf((float)y + 1, bottom) - fmaxf((float)y, top);
            const uint8_t *pixels = page->ink + (size_t)(box.top + y) * (size_t)page->width + box.left;
            for (int x = 0; x < columns; x++) {
                ink[x] += pixels[x] != 0 ? high : 0;
            }
        }
        before[0] = 0;
        for (int x = 0; x < columns; x++) {
            before[x + 1] = before[x] + ink[x];
        }
        float left = 0;
        for (int column = 0; column < GLYPH_SIDE; column++) {
            const float place = (float)(column + 1) * width;
            const int x = (int)place;
            const float right = before[x] + ink[x] * (place - (float)x);
            to->ink[row * GLYPH_SIDE + column] = (uint8_t)((right - left) * scale + 0.5f);
            left = right;
        }
    }
}

/* The mean difference of the fields, from 0 to 1; infinite above `limit`. */
static float raster_difference(const raster *a, const raster *b, float limit) {
    int sum = 0;
    limit *= FIELDS * INK_MAX;
    for (int i = 0; i < FIELDS && (float)sum <= limit; i += FIELDS_AT_ONCE) {
        for (int j = i; j < i + FIELDS_AT_ONCE; j++) {
            sum += abs(a->ink[j] - b->ink[j]);
        }
    }
    return (float)sum <= limit ? (float)sum * (1.0f / (FIELDS * INK_MAX)) : INFINITY;
}

/* How badly a box fits each glyph by its measures. */
static void misfits(box box, const setting *setting, float costs[GLYPHS]) {
    const float width = (float)(box.right - box.left), height = (float)(box.bottom - box.top);
    if (setting->em > 0) {
        const float em = setting->em, share = 1 / em, below = (float)box.bottom - setting->baseline;
        for (int i = 0; i < GLYPHS; i++) {
            const float wide = fabsf(width - looks.width[i] * em), high = fabsf(height - looks.height[i] * em);
            const float deep = fabsf(below - looks.below[i] * em);
            /* A pixel more or less is not the letter's. */
            costs[i] = (fmaxf(wide - 1, 0) + fmaxf(high - 0.5f, 0) + fmaxf(deep - 0.5f, 0)) * share;
        }
    } else {
        const float slim = slimness(width, height);
        for (int i = 0; i < GLYPHS; i++) {
            costs[i] = 0.3f * fabsf(slim - looks.slimness[i]);
        }
    }
    for (int i = 0; i < GLYPHS; i++) {
        costs[i] = setting->font < 0 || glyphs[i].font == setting->font ? costs[i] : INFINITY;
    }
}

/* The best glyph for a box and its raster. */
static match match_raster(const raster *raster, box box, const setting *setting) {
    float costs[GLYPHS];
    misfits(box, setting, costs);
    /* The one that fits best first: the others have to do better. */
    int likely = 0;
    for (int i = 1; i < GLYPHS; i++) {
        likely = costs[i] < costs[likely] ? i : likely;
    }
    match best = {&glyphs[likely], costs[likely] + raster_difference(raster, &looks.raster[likely], INFINITY)};
    for (int i = 0; i < GLYPHS; i++) {
        if (costs[i] < best.cost) {
            const float cost = costs[i] + raster_difference(raster, &looks.raster[i], best.cost - costs[i]);
            best = cost < best.cost ? (match){&glyphs[i], cost} : best;
        }
    }
    return best;
}

/* The best glyph for what is in a box. */
static match match_box(const page *page, box box, const setting *setting) {
    raster raster;
    raster_of(page, box, &raster);
    return match_raster(&raster, box, setting);
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
static setting setting_of(const shape *line, const raster *rasters, int count, const setting *from, float *scratch, float *cost) {
    setting learnt = *from;
    match *matches = malloc((size_t)count * sizeof *matches);
    int used = 0;
    *cost = INFINITY;
    if (matches == NULL) {
        return learnt;
    }
    *cost = 0;
    for (int i = 0; i < count; i++) {
        matches[i] = match_raster(&rasters[i], line[i].box, from);
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
