/* Shapes: pieces of connected ink, put together to what may be characters, line by line. */
#ifndef OCR_SHAPE_H
#define OCR_SHAPE_H

#include "page.h"

enum {
    SHAPES_MAX = 1 << 15,
    SPECK_PIXELS_MAX = 4, /* pieces of at most so many are dirt */
};

/* A rectangle of pixels; right and bottom are outside. */
typedef struct {
    int left, top, right, bottom;
} box;

typedef struct {
    box box;
    int line; /* from 0, downwards */
} shape;

typedef struct {
    shape *all; /* line by line, each from left to right */
    int count, lines;
} shapes;

static inline int smaller(int a, int b) {
    return a < b ? a : b;
}

static inline int larger(int a, int b) {
    return a > b ? a : b;
}

static inline box box_around(box a, box b) {
    return (box){smaller(a.left, b.left), smaller(a.top, b.top), larger(a.right, b.right), larger(a.bottom, b.bottom)};
}

/* The piece that a pixel of ink belongs to, found by flooding; its pixels become 2. `stack` has room for the whole page. */
static box piece_at(page *page, int x, int y, int32_t *stack, int *pixels) {
    box piece = {x, y, x + 1, y + 1};
    int depth = 0;
    *pixels = 0;
    stack[depth++] = y * page->width + x;
    page->ink[y * page->width + x] = 2;
    while (depth > 0) {
        const int32_t at = stack[--depth];
        x = at % page->width, y = at / page->width;
        ++*pixels;
        piece = box_around(piece, (box){x, y, x + 1, y + 1});
        for (int ny = larger(y - 1, 0); ny <= smaller(y + 1, page->height - 1); ny++) {
            for (int nx = larger(x - 1, 0); nx <= smaller(x + 1, page->width - 1); nx++) {
                const int32_t near = ny * page->width + nx;
                if (page->ink[near] == 1) {
                    page->ink[near] = 2;
                    stack[depth++] = near;
                }
            }
        }
    }
    return piece;
}

static int shape_order(const void *a, const void *b) {
    const shape *left = a, *right = b;
    return left->line != right->line ? left->line - right->line : left->box.left - right->box.left;
}

/* Numbers the lines: runs of rows that some shape touches. Runs far lower than the others are dirt, and so are their shapes. */
static bool shapes_to_lines(shapes *shapes, int height) {
    int32_t *line_of = calloc((size_t)height + 1, sizeof *line_of);
    if (line_of == NULL) {
        return false;
    }
    for (int i = 0; i < shapes->count; i++) {
        line_of[shapes->all[i].box.top]++, line_of[shapes->all[i].box.bottom]--;
    }
    /* Now the differences of how many shapes are in a row; next the rows of the highest run; then their lines. */
    int highest = 0, run = 0;
    for (int y = 0, inside = 0; y <= height; y++) {
        inside += line_of[y];
        line_of[y] = inside;
        run = inside > 0 ? run + 1 : 0;
        highest = larger(highest, run);
    }
    shapes->lines = 0;
    for (int y = 0; y <= height; y++) {
        run = 0;
        while (y + run <= height && line_of[y + run] > 0) {
            run++;
        }
        const bool is_line = run * 4 > highest;
        for (int i = 0; i < run; i++) {
            line_of[y + i] = is_line ? shapes->lines : -1;
        }
        shapes->lines += is_line;
        y += run;
    }
    int kept = 0;
    for (int i = 0; i < shapes->count; i++) {
        shape shape = shapes->all[i];
        shape.line = line_of[shape.box.top];
        if (shape.line >= 0) {
            shapes->all[kept++] = shape;
        }
    }
    shapes->count = kept;
    free(line_of);
    return true;
}

/* Puts pieces together that stand above one another: dots, accents, the two strokes of an equals sign. */
static void shapes_join(shapes *shapes) {
    int kept = 0;
    for (int i = 0; i < shapes->count; i++) {
        const shape next = shapes->all[i];
        shape *last = kept > 0 ? &shapes->all[kept - 1] : NULL;
        if (last != NULL && last->line == next.line) {
            const int common = smaller(last->box.right, next.box.right) - next.box.left;
            const int narrower = smaller(last->box.right - last->box.left, next.box.right - next.box.left);
            if (common * 2 > narrower) {
                last->box = box_around(last->box, next.box);
                continue;
            }
        }
        shapes->all[kept++] = next;
    }
    shapes->count = kept;
}

/* Null, or what went wrong. Marks all ink of the page 2. */
static const char *shapes_find(page *page, shapes *to) {
    const char *const no_memory = "there is not enough memory to take the page apart";
    int32_t *stack = malloc((size_t)page->width * (size_t)page->height * sizeof *stack);
    *to = (shapes){malloc(SHAPES_MAX * sizeof *to->all), 0, 0};
    if (stack == NULL || to->all == NULL) {
        return no_memory;
    }
    for (int y = 0; y < page->height; y++) {
        for (int x = 0; x < page->width; x++) {
            if (page->ink[y * page->width + x] != 1) {
                continue;
            }
            int pixels;
            const box piece = piece_at(page, x, y, stack, &pixels);
            if (pixels <= SPECK_PIXELS_MAX) {
                continue;
            }
            if (to->count == SHAPES_MAX) {
                return "the page has more than 32,768 separate pieces of ink: it is no page of printed text";
            }
            to->all[to->count++] = (shape){piece, 0};
        }
    }
    free(stack);
    if (!shapes_to_lines(to, page->height)) {
        return no_memory;
    }
    qsort(to->all, (size_t)to->count, sizeof *to->all, shape_order);
    shapes_join(to);
    return NULL;
}

#endif
