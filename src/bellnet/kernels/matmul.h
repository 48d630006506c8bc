/* Products of matrices, a block of rows at a time, and operations on rows.
 *
 * One matrix is packed in panels of a few vectors, as long as those of the processor, or shorter for few columns.
 */
#if MOST_BYTES == 64
#define MOST_VECTORS 4
#else
#define MOST_VECTORS 2
#endif

/* The number of values in the vectors for this number of columns. */
static i64 NAMED(lanes)(i64 n_columns) {
    i64 bytes = MOST_BYTES;
    while (bytes > 16 && n_columns * (i64)sizeof(REAL) <= bytes / 2) bytes /= 2;
    return bytes / sizeof(REAL);
}

static i64 NAMED(padded)(i64 n_columns) {
    i64 lanes = NAMED(lanes)(n_columns);
    return (n_columns + lanes - 1) / lanes * lanes;
}

/* The number of vectors of the panel that begins at `first`. */
INLINE i64 NAMED(panel)(i64 n_vectors, i64 first) {
    i64 left = n_vectors - first;
    if (left <= MOST_VECTORS) return left;
    return left < 2 * MOST_VECTORS ? (left + 1) / 2 : MOST_VECTORS;
}

/* Pack a matrix in panels, padded with zero columns; its rows begin at row `at` of the `height` of the panels. */
static void NAMED(pack)(REAL *packed, i64 height, i64 at, const REAL *matrix, i64 n_rows, i64 n_columns, i64 row_stride,
                        i64 column_stride) {
    i64 lanes = NAMED(lanes)(n_columns), n_vectors = NAMED(padded)(n_columns) / lanes;
    for (i64 first = 0, size; first < n_vectors; first += size) {
        size = NAMED(panel)(n_vectors, first);
        i64 start = first * lanes, width = size * lanes, inside = least(n_columns - start, width);
        for (i64 row = 0; row < n_rows; row++) {
            REAL *to = packed + height * start + (at + row) * width;
            const REAL *from = matrix + row * row_stride + start * column_stride;
            for (i64 column = 0; column < inside; column++) to[column] = from[column * column_stride];
            for (i64 column = inside; column < width; column++) to[column] = 0;
        }
    }
}

#define VECTOR_BYTES 16
#include "matmul_tiles.h"
#undef VECTOR_BYTES
#if MOST_BYTES >= 32
#define VECTOR_BYTES 32
#include "matmul_tiles.h"
#undef VECTOR_BYTES
#endif
#if MOST_BYTES == 64
#define VECTOR_BYTES 64
#include "matmul_tiles.h"
#undef VECTOR_BYTES
#endif

/* Call the variant of a function for vectors of `lanes` values. */
#if MOST_BYTES == 64
#define BY_LANES(name, lanes, ...)                                                   \
    if ((lanes) * sizeof(REAL) == 64) JOINED(NAMED(name), 64)(__VA_ARGS__);          \
    else if ((lanes) * sizeof(REAL) == 32) JOINED(NAMED(name), 32)(__VA_ARGS__);     \
    else JOINED(NAMED(name), 16)(__VA_ARGS__);
#elif MOST_BYTES == 32
#define BY_LANES(name, lanes, ...)                                                   \
    if ((lanes) * sizeof(REAL) == 32) JOINED(NAMED(name), 32)(__VA_ARGS__);          \
    else JOINED(NAMED(name), 16)(__VA_ARGS__);
#else
#define BY_LANES(name, lanes, ...) (void)(lanes), JOINED(NAMED(name), 16)(__VA_ARGS__);
#endif

/* Add rows times a packed matrix to the rows that pointers name, or write it there. */
static void NAMED(multiply)(const REAL *rows, i64 stride, i64 n_rows, i64 height, const REAL *packed, i64 n_columns,
                            REAL *const *into, int is_first) {
    BY_LANES(multiply, NAMED(lanes)(n_columns), rows, stride, n_rows, height, packed, n_columns, into, is_first)
}

/* Add the transpose of (n_rows, n_left) times (n_rows, n_right) to a matrix; n_right is a multiple of `lanes`. */
static void NAMED(multiply_transposed)(const REAL *left, i64 left_stride, i64 n_left, const REAL *right, i64 n_right,
                                       i64 lanes, i64 n_rows, REAL *into) {
    BY_LANES(multiply_transposed, lanes, left, left_stride, n_left, right, n_right, n_rows, into)
}
#undef BY_LANES

/* ---- rows, by the longest vectors */

#define Wide NAMED(Wide)
#define Half NAMED(Half)
#define Words NAMED(Words)
typedef REAL Wide __attribute__((vector_size(MOST_BYTES), aligned(sizeof(REAL)), may_alias));
typedef REAL Half __attribute__((vector_size(MOST_BYTES / 2), aligned(sizeof(REAL)), may_alias));
typedef i64 Words __attribute__((vector_size(MOST_BYTES), aligned(sizeof(REAL)), may_alias));
#define WIDE ((i64)(MOST_BYTES / sizeof(REAL)))

#define AT(Kind, row) (*(Kind *)((row) + at))
#define CONST_AT(Kind, row) (*(const Kind *)((row) + at))
/* A statement on all columns of rows, for vectors, half vectors and single values of type Kind. */
#define FOR_COLUMNS(width, statement)                                                          \
    i64 at = 0;                                                                                \
    for (; at + WIDE <= width; at += WIDE) statement(Wide);                                    \
    if (at + WIDE / 2 <= width) {                                                              \
        statement(Half);                                                                       \
        at += WIDE / 2;                                                                        \
    }                                                                                          \
    for (; at < width; at++) statement(REAL);

INLINE void NAMED(copy_row)(REAL *restrict to, const REAL *restrict from, i64 width) {
#define COPY_ROW(Kind) AT(Kind, to) = CONST_AT(Kind, from)
    FOR_COLUMNS(width, COPY_ROW)
#undef COPY_ROW
}

INLINE void NAMED(add_row)(REAL *restrict to, const REAL *restrict from, i64 width) {
#define ADD_ROW(Kind) AT(Kind, to) += CONST_AT(Kind, from)
    FOR_COLUMNS(width, ADD_ROW)
#undef ADD_ROW
}

INLINE void NAMED(add_two_rows)(REAL *restrict to, const REAL *one, const REAL *other, i64 width) {
#define ADD_TWO(Kind) AT(Kind, to) = CONST_AT(Kind, one) + CONST_AT(Kind, other)
    FOR_COLUMNS(width, ADD_TWO)
#undef ADD_TWO
}

INLINE void NAMED(clear_row)(REAL *to, i64 width) {
#define CLEAR_ROW(Kind) AT(Kind, to) = (Kind){0}
    FOR_COLUMNS(width, CLEAR_ROW)
#undef CLEAR_ROW
}

/* Add to a row the sum of the rows from `first` to before `last`, those that `order` names unless it is NULL. */
INLINE void NAMED(add_sum)(REAL *restrict to, const REAL *restrict rows, i64 stride, const i64 *order, i64 first, i64 last,
                           i64 width) {
    i64 at = 0;
    for (; at + 3 * WIDE <= width; at += 3 * WIDE) {
        Wide one = {0}, second = {0}, third = {0};
        for (i64 row = first; row < last; row++) {
            const REAL *from = rows + (order ? order[row] : row) * stride + at;
            one += *(const Wide *)from;
            second += *(const Wide *)(from + WIDE);
            third += *(const Wide *)(from + 2 * WIDE);
        }
        AT(Wide, to) += one;
        AT(Wide, to + WIDE) += second;
        AT(Wide, to + 2 * WIDE) += third;
    }
#define ADD_SUM(Kind)                                                                                              \
    do {                                                                                                           \
        Kind sum = {0};                                                                                            \
        for (i64 row = first; row < last; row++) sum += CONST_AT(Kind, rows + (order ? order[row] : row) * stride);\
        AT(Kind, to) += sum;                                                                                       \
    } while (0)
    for (; at + WIDE <= width; at += WIDE) ADD_SUM(Wide);
    for (; at + WIDE / 2 <= width; at += WIDE / 2) ADD_SUM(Half);
    for (; at < width; at++) ADD_SUM(REAL);
#undef ADD_SUM
}

/* Whether all values of a row are zero; of most others the first one is not. */
INLINE int NAMED(is_zero)(const REAL *row, i64 width) {
    i64 at = 0;
    if (width > 0 && row[0] != 0) return 0;
    for (i64 end; at + WIDE <= width; at = end) {
        Words some = {0};
        for (end = at; end + WIDE <= width && end < at + 4 * WIDE; end += WIDE) some |= (Words)(*(const Wide *)(row + end) != 0);
        for (i64 one = 1; one < (i64)(MOST_BYTES / sizeof(i64)); one++) some[0] |= some[one];
        if (some[0]) return 0;
    }
    for (; at < width; at++)
        if (row[at] != 0) return 0;
    return 1;
}
#undef AT
#undef CONST_AT
#undef FOR_COLUMNS
