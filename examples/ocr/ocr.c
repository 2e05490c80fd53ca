/* ocr: a page of printed text in, its text out.
 *
 * Standard input: a portable bitmap. Standard output: the text, in ASCII. Anything else on the input: a line on standard error, exit
 * status 1 and no output.
 *
 * The page is cleaned (page.h), taken apart into shapes and lines (shape.h), and each shape matched with the glyphs of two fonts
 * (match.h, glyphs.h); what matches no glyph is cut in two where its ink is thinnest. */
#include <stdio.h>

#include "match.h"

enum {
    BODY_BYTES_MAX = 2 * PAGE_PIXELS_MAX + 4096, /* P1 with a blank after each digit */
    PIECES_MAX = 12,                             /* of one shape */
    SPACES_MAX = 200,
};

#define GAIN_MIN 0.5f /* parts have to match so much better than the whole */

typedef struct {
    box box;
    match match;
} letter;

/* The box without its margins. False if it has no ink. */
static bool tighten(const page *page, box *box) {
    struct {
        int left, top, right, bottom;
    } tight = {box->right, box->bottom, box->left, box->top};
    for (int y = box->top; y < box->bottom; y++) {
        for (int x = box->left; x < box->right; x++) {
            if (page->ink[y * page->width + x] != 0) {
                tight.left = smaller(tight.left, x), tight.right = larger(tight.right, x + 1);
                tight.top = smaller(tight.top, y), tight.bottom = larger(tight.bottom, y + 1);
            }
        }
    }
    if (tight.left >= tight.right) {
        return false;
    }
    box->left = tight.left, box->top = tight.top, box->right = tight.right, box->bottom = tight.bottom;
    return true;
}

static int column_ink(const page *page, box box, int x) {
    int ink = 0;
    for (int y = box.top; y < box.bottom; y++) {
        ink += page->ink[y * page->width + x] != 0;
    }
    return ink;
}

/* The characters of one shape, from left to right: itself, or where that is no character, parts of it. */
static int letters_of(const page *page, box whole, const setting *setting, letter *to, int room) {
    const match as_one = match_box(page, whole, setting);
    const int margin = (int)(setting->em * 0.12f) + 1, thin = (int)(setting->em * 0.2f) + 1;
    struct {
        box left, right;
        float cost;
    } best = {whole, whole, as_one.cost};
    if (as_one.cost > COST_BAD && room > 1) {
        for (int x = whole.left + margin; x < whole.right - margin; x++) {
            if (column_ink(page, whole, x) > thin) {
                continue;
            }
            box left = {whole.left, whole.top, x, whole.bottom}, right = {x, whole.top, whole.right, whole.bottom};
            if (!tighten(page, &left) || !tighten(page, &right)) {
                continue;
            }
            /* One good part is enough: the other may be cut again. */
            const float a = match_box(page, left, setting).cost, b = match_box(page, right, setting).cost;
            const float cost = fminf(a, b) * 0.8f + fmaxf(a, b) * 0.2f;
            if (cost < best.cost * GAIN_MIN) {
                best.left = left, best.right = right, best.cost = cost;
            }
        }
    }
    if (best.cost == as_one.cost) {
        to[0] = (letter){whole, as_one};
        return 1;
    }
    const int first = letters_of(page, best.left, setting, to, room - 1);
    return first + letters_of(page, best.right, setting, to + first, room - first);
}

static const glyph *glyph_of(char character, int font) {
    const glyph *found = glyphs;
    while (found->character != character || found->font != font) {
        found++;
    }
    return found;
}

/* A quotation mark is two pieces side by side, and was taken for two apostrophes. */
static int join_quotes(letter *letters, int count, const setting *setting) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        letter *last = kept > 0 ? &letters[kept - 1] : NULL;
        const glyph *glyph = letters[i].match.glyph;
        if (last != NULL && glyph->character == '\'' && last->match.glyph->character == '\'' &&
            (float)(letters[i].box.left - last->box.right) < setting->em * 0.25f) {
            last->box = box_around(last->box, letters[i].box);
            last->match.glyph = glyph_of('"', glyph->font);
        } else {
            letters[kept++] = letters[i];
        }
    }
    return kept;
}

/* Writes a line, with as many spaces between letters as there is room for. */
static void write_line(const letter *letters, int count, const setting *setting) {
    const float em = setting->em * 0.001f;
    for (int i = 0; i < count; i++) {
        const glyph *glyph = letters[i].match.glyph;
        if (i > 0) {
            const struct glyph *before = letters[i - 1].match.glyph;
            const float pen = (float)letters[i - 1].box.left + (float)(before->advance - before->left) * em;
            const float origin = (float)letters[i].box.left - (float)glyph->left * em;
            const float spaces = (origin - pen) / ((float)glyph_spaces[glyph->font] * em) + 0.5f;
            /* Where nothing says how large letters are, nothing says how far apart words are. */
            for (int left = em > 0 && spaces > 0 ? (int)fminf(spaces, (float)SPACES_MAX) : 0; left > 0; left--) {
                putchar(' ');
            }
        }
        putchar(glyph->character);
    }
    putchar('\n');
}

/* Null, or what went wrong. */
static const char *read_line(const page *page, const shape *line, int count) {
    static letter letters[SHAPES_MAX];
    const char *const no_memory = "there is not enough memory to read a line";
    float *scratch = malloc((size_t)count * sizeof *scratch);
    raster *rasters = malloc((size_t)count * sizeof *rasters);
    if (scratch == NULL || rasters == NULL) {
        return no_memory;
    }
    for (int i = 0; i < count; i++) {
        raster_of(page, line[i].box, &rasters[i]);
    }
    setting best = {0, 0, -1};
    float cost = INFINITY;
    for (int font = 0; font < GLYPH_FONTS; font++) {
        setting setting = {0, 0, font};
        float last = INFINITY;
        for (int round = 0; round < 3; round++) {
            setting = setting_of(line, rasters, count, &setting, scratch, &last);
        }
        if (last < cost) {
            best = setting, cost = last;
        }
    }
    free(rasters);
    free(scratch);
    if (cost == INFINITY) {
        return no_memory;
    }
    int found = 0;
    for (int i = 0; i < count && found < SHAPES_MAX - PIECES_MAX; i++) {
        found += letters_of(page, line[i].box, &best, letters + found, PIECES_MAX);
    }
    write_line(letters, join_quotes(letters, found, &best), &best);
    return NULL;
}

static int fail(const char *text) {
    fprintf(stderr, "ocr: %s\n", text);
    return 1;
}

int main(void) {
    uint8_t *body = NULL;
    size_t length = 0, capacity = 0;
    while (!feof(stdin)) {
        if (length == capacity) {
            capacity = capacity == 0 ? 1 << 16 : capacity * 2;
            uint8_t *const grown = capacity <= 2 * (size_t)BODY_BYTES_MAX ? realloc(body, capacity) : NULL;
            if (grown == NULL) {
                return fail("the body is larger than a bitmap of 16,777,216 pixels");
            }
            body = grown;
        }
        length += fread(body + length, 1, capacity - length, stdin);
        if (ferror(stdin)) {
            return fail("the body cannot be read");
        }
    }
    glyphs_read();
    page page;
    shapes shapes;
    const char *wrong = page_read(body, length, &page);
    if (wrong == NULL && !page_clean(&page)) {
        wrong = "there is not enough memory to clean the page";
    }
    if (wrong == NULL) {
        wrong = shapes_find(&page, &shapes);
    }
    for (int i = 0, next; wrong == NULL && i < shapes.count; i = next) {
        for (next = i; next < shapes.count && shapes.all[next].line == shapes.all[i].line;) {
            next++;
        }
        wrong = read_line(&page, shapes.all + i, next - i);
    }
    if (wrong != NULL) {
        return fail(wrong);
    }
    return fflush(stdout) == 0 ? 0 : fail("the reply cannot be written");
}
