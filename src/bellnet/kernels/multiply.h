/* Products of matrices, a block of rows at a time: the one matrix lies in panels of a few vectors.
 *
 * Vectors are as long as the processor's, or shorter where results have few columns.
 */
#define NAMED(name) JOINED(name, TYPE)

#if defined(__AVX512F__)
#define MOST_BYTES 64
#define MOST_VECTORS 4
#elif defined(__AVX__)
#define MOST_BYTES 32
#define MOST_VECTORS 2
#else
#define MOST_BYTES 16
#define MOST_VECTORS 2
#endif

/* How many numbers the vectors have for results with so many columns. */
static i64 NAMED(lanes)(i64 n_columns) {
    i64 bytes = MOST_BYTES;
    while (bytes > 16 && n_columns * (i64)sizeof(REAL) <= bytes / 2) bytes /= 2;
    return bytes / sizeof(REAL);
}

static i64 NAMED(padded)(i64 n_columns) {
    i64 lanes = NAMED(lanes)(n_columns);
    return (n_columns + lanes - 1) / lanes * lanes;
}

/* The vectors of the panel that begins at one of them. */
INLINE i64 NAMED(panel)(i64 n_vectors, i64 first) {
    i64 left = n_vectors - first;
    if (left <= MOST_VECTORS) return left;
    return left < 2 * MOST_VECTORS ? (left + 1) / 2 : MOST_VECTORS;
}

/* A matrix in panels, zeros behind its last column: `rows` rows begin at row `at` of the `height` that panels have. */
static void NAMED(pack)(REAL *packed, i64 height, i64 at, const REAL *matrix, i64 rows, i64 columns, i64 row_step,
                        i64 column_step) {
    i64 lanes = NAMED(lanes)(columns), n_vectors = NAMED(padded)(columns) / lanes;
    for (i64 first = 0, size; first < n_vectors; first += size) {
        size = NAMED(panel)(n_vectors, first);
        i64 start = first * lanes, width = size * lanes, inside = least(columns - start, width);
        for (i64 row = 0; row < rows; row++) {
            REAL *to = packed + height * start + (at + row) * width;
            const REAL *from = matrix + row * row_step + start * column_step;
            for (i64 column = 0; column < inside; column++) to[column] = from[column * column_step];
            for (i64 column = inside; column < width; column++) to[column] = 0;
        }
    }
}

#define VECTOR_BYTES 16
#include "tiles.h"
#undef VECTOR_BYTES
#if MOST_BYTES >= 32
#define VECTOR_BYTES 32
#include "tiles.h"
#undef VECTOR_BYTES
#endif
#if MOST_BYTES == 64
#define VECTOR_BYTES 64
#include "tiles.h"
#undef VECTOR_BYTES
#endif

/* Add (rows, height) times a matrix in panels to rows that pointers name. */
static void NAMED(multiply)(const REAL *rows, i64 step, i64 n_rows, i64 height, const REAL *packed, i64 columns,
                            REAL *const *into, int is_first) {
#if MOST_BYTES >= 32
    i64 bytes = NAMED(lanes)(columns) * (i64)sizeof(REAL);
#endif
#if MOST_BYTES == 64
    if (bytes == 64) {
        JOINED(NAMED(multiply), 64)(rows, step, n_rows, height, packed, columns, into, is_first);
        return;
    }
#endif
#if MOST_BYTES >= 32
    if (bytes == 32) {
        JOINED(NAMED(multiply), 32)(rows, step, n_rows, height, packed, columns, into, is_first);
        return;
    }
#endif
    JOINED(NAMED(multiply), 16)(rows, step, n_rows, height, packed, columns, into, is_first);
}

/* Add the transpose of (n_rows, n_left) times (n_rows, n_right) to a matrix; n_right is a multiple of the lanes. */
static void NAMED(pair)(const REAL *left, i64 left_step, i64 n_left, const REAL *right, i64 n_right, i64 lanes,
                        i64 n_rows, REAL *into) {
#if MOST_BYTES >= 32
    i64 bytes = lanes * (i64)sizeof(REAL);
#else
    (void)lanes;
#endif
#if MOST_BYTES == 64
    if (bytes == 64) {
        JOINED(NAMED(pair), 64)(left, left_step, n_left, right, n_right, n_rows, into);
        return;
    }
#endif
#if MOST_BYTES >= 32
    if (bytes == 32) {
        JOINED(NAMED(pair), 32)(left, left_step, n_left, right, n_right, n_rows, into);
        return;
    }
#endif
    JOINED(NAMED(pair), 16)(left, left_step, n_left, right, n_right, n_rows, into);
}

/* ---- rows of numbers, by vectors as long as there are */

#define Wide NAMED(Wide)
#define Half NAMED(Half)
#define Words NAMED(Words)
typedef REAL Wide __attribute__((vector_size(MOST_BYTES), aligned(sizeof(REAL)), may_alias));
typedef REAL Half __attribute__((vector_size(MOST_BYTES / 2), aligned(sizeof(REAL)), may_alias));
typedef i64 Words __attribute__((vector_size(MOST_BYTES), aligned(sizeof(REAL)), may_alias));
#define WIDE ((i64)(MOST_BYTES / sizeof(REAL)))

INLINE void NAMED(copy_row)(REAL *restrict to, const REAL *restrict from, i64 width) {
    i64 place = 0;
    for (; place + WIDE <= width; place += WIDE) *(Wide *)(to + place) = *(const Wide *)(from + place);
    if (place + WIDE / 2 <= width) {
        *(Half *)(to + place) = *(const Half *)(from + place);
        place += WIDE / 2;
    }
    for (; place < width; place++) to[place] = from[place];
}

INLINE void NAMED(add_row)(REAL *restrict to, const REAL *restrict from, i64 width) {
    i64 place = 0;
    for (; place + WIDE <= width; place += WIDE) *(Wide *)(to + place) += *(const Wide *)(from + place);
    if (place + WIDE / 2 <= width) {
        *(Half *)(to + place) += *(const Half *)(from + place);
        place += WIDE / 2;
    }
    for (; place < width; place++) to[place] += from[place];
}

INLINE void NAMED(clear_row)(REAL *to, i64 width) {
    i64 place = 0;
    for (; place + WIDE <= width; place += WIDE) *(Wide *)(to + place) = (Wide){0};
    for (; place < width; place++) to[place] = 0;
}

/* The sum of two rows. */
INLINE void NAMED(sum_rows)(REAL *restrict to, const REAL *one, const REAL *other, i64 width) {
    i64 place = 0;
    for (; place + WIDE <= width; place += WIDE)
        *(Wide *)(to + place) = *(const Wide *)(one + place) + *(const Wide *)(other + place);
    if (place + WIDE / 2 <= width) {
        *(Half *)(to + place) = *(const Half *)(one + place) + *(const Half *)(other + place);
        place += WIDE / 2;
    }
    for (; place < width; place++) to[place] = one[place] + other[place];
}

/* Whether a row has nothing but zeros; most others show at once that they have not. */
INLINE int NAMED(is_zero)(const REAL *row, i64 width) {
    i64 place = 0;
    if (width > 0 && row[0] != 0) return 0;
    for (i64 end; place + WIDE <= width; place = end) {
        Words some = {0};
        for (end = place; end + WIDE <= width && end < place + 4 * WIDE; end += WIDE) some |= (Words)(*(const Wide *)(row + end) != 0);
        for (i64 one = 1; one < (i64)(MOST_BYTES / sizeof(i64)); one++) some[0] |= some[one];
        if (some[0]) return 0;
    }
    for (; place < width; place++)
        if (row[place] != 0) return 0;
    return 1;
}
