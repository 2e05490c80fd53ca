/* A page: a bitmap, one byte a pixel, cleaned of specks.
 *
 * Takes portable bitmaps (netpbm's PBM): P4, eight pixels a byte, and P1, digits. 1 is ink. */
#ifndef OCR_PAGE_H
#define OCR_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_SIDE_MAX = 10000,       /* pixels */
    PAGE_PIXELS_MAX = 16 << 20, /* a sheet of A4 at 400 dots an inch has 15.5 million */
};

typedef struct {
    int width, height; /* pixels */
    uint8_t *ink;      /* width x height, row by row, 1 or 0 */
} page;

typedef struct {
    const uint8_t *next, *end;
} page_reader;

/* Skips blanks and comments, which go from '#' to the end of their line. */
static void page_skip(page_reader *reader) {
    bool comment = false;
    for (; reader->next < reader->end; reader->next++) {
        const uint8_t byte = *reader->next;
        if (byte == '\n' || byte == '\r') {
            comment = false;
        } else if (byte == '#') {
            comment = true;
        } else if (!comment && byte != ' ' && byte != '\t' && byte != '\v' && byte != '\f') {
            return;
        }
    }
}

/* -1 where there is no number, or one above PAGE_SIDE_MAX. */
static int page_number(page_reader *reader) {
    page_skip(reader);
    int number = -1;
    for (; reader->next < reader->end && *reader->next >= '0' && *reader->next <= '9'; reader->next++) {
        number = (number < 0 ? 0 : number) * 10 + (*reader->next - '0');
        if (number > PAGE_SIDE_MAX) {
            return -1;
        }
    }
    return number;
}

/* Null, or what is wrong with the bitmap. */
static const char *page_read(const uint8_t *bytes, size_t length, page *to) {
    page_reader reader = {bytes, bytes + length};
    if (length < 2 || bytes[0] != 'P' || (bytes[1] != '1' && bytes[1] != '4')) {
        return "the body is no portable bitmap: it has to begin with P4 or P1 (pnmtopbm makes one)";
    }
    const bool packed = bytes[1] == '4';
    reader.next += 2;
    to->width = page_number(&reader);
    to->height = page_number(&reader);
    if (to->width <= 0 || to->height <= 0 || (int64_t)to->width * to->height > PAGE_PIXELS_MAX) {
        return "the bitmap's width and height have to be numbers from 1 to 10000, with at most 16,777,216 pixels together";
    }
    const size_t width = (size_t)to->width, height = (size_t)to->height, row_bytes = (width + 7) / 8;
    to->ink = malloc(width * height);
    if (to->ink == NULL) {
        return "there is not enough memory for a bitmap of this size";
    }
    if (packed) {
        reader.next += reader.next < reader.end; /* one blank ends the head */
        if ((size_t)(reader.end - reader.next) < row_bytes * height) {
            return "the bitmap ends before its last row";
        }
        for (size_t y = 0; y < height; y++) {
            for (size_t x = 0; x < width; x++) {
                to->ink[y * width + x] = reader.next[y * row_bytes + x / 8] >> (7 - x % 8) & 1;
            }
        }
        return NULL;
    }
    for (size_t i = 0; i < width * height; i++) {
        page_skip(&reader);
        if (reader.next == reader.end || (*reader.next != '0' && *reader.next != '1')) {
            return "the bitmap has too few pixels, or one that is neither 0 nor 1";
        }
        to->ink[i] = *reader.next++ - '0';
    }
    return NULL;
}

/* Turns over each pixel that stands alone: ink with at most one neighbour of ink, paper with at most one of paper. */
static bool page_clean(page *page) {
    const int width = page->width, height = page->height;
    uint8_t *rows = calloc(3, (size_t)width + 2); /* as they were, with a margin of paper: above, here, below */
    if (rows == NULL) {
        return false;
    }
    uint8_t *above = rows + 1, *here = above + width + 2, *below = here + width + 2;
    memcpy(below, page->ink, (size_t)width);
    for (int y = 0; y < height; y++) {
        uint8_t *const oldest = above;
        above = here, here = below, below = oldest;
        if (y + 1 < height) {
            memcpy(below, page->ink + (size_t)(y + 1) * (size_t)width, (size_t)width);
        } else {
            memset(below, 0, (size_t)width);
        }
        uint8_t *ink = page->ink + (size_t)y * (size_t)width;
        for (int x = 0; x < width; x++) {
            const int around = above[x - 1] + above[x] + above[x + 1] + here[x - 1] + here[x + 1] + below[x - 1] +
                               below[x] + below[x + 1];
            ink[x] = here[x] ? around > 1 : around > 6;
        }
    }
    free(rows);
    return true;
}

#endif
