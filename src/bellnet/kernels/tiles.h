/* The inner loops of products, for vectors of so many bytes: a tile of the result stays in registers. */
#define LANES ((i64)(VECTOR_BYTES / sizeof(REAL)))
#define OF_BYTES(name) JOINED(NAMED(name), VECTOR_BYTES)
#define Vector OF_BYTES(Vector)

typedef REAL Vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

INLINE Vector OF_BYTES(loaded)(const REAL *from) { return *(const Vector *)from; }
INLINE void OF_BYTES(stored)(REAL *to, Vector vector) { *(Vector *)to = vector; }

/* Some of the columns of rows that were multiplied, written or added where they belong. */
static __attribute__((noinline)) void OF_BYTES(store_part)(i64 n_rows, const REAL *numbers, i64 step, REAL *const *into,
                                                           i64 column, i64 n_columns, int is_first) {
    for (i64 row = 0; row < n_rows; row++)
        for (i64 one = 0; one < n_columns; one++)
            into[row][column + one] = numbers[row * step + one] + (is_first ? 0 : into[row][column + one]);
}

/* So many rows times one panel, whose last vector may reach beyond the result. */
INLINE void OF_BYTES(multiply_tile)(const int n_rows, const int n_vectors, const REAL *rows, i64 step, i64 height,
                                    const REAL *panel, REAL *const *into, i64 column, i64 n_columns, int is_first) {
    Vector sums[8][4];
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++) sums[row][one] = (Vector){0};
    for (i64 place = 0; place < height; place++) {
        Vector weights[4];
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++)
            weights[one] = OF_BYTES(loaded)(panel + (place * n_vectors + one) * LANES);
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++) {
            REAL number = rows[row * step + place];
#pragma GCC unroll 4
            for (int one = 0; one < n_vectors; one++) sums[row][one] += number * weights[one];
        }
    }
    if (n_columns < n_vectors * LANES) {
        REAL numbers[8 * 4 * LANES];
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 4
            for (int one = 0; one < n_vectors; one++)
                OF_BYTES(stored)(numbers + (row * n_vectors + one) * LANES, sums[row][one]);
        OF_BYTES(store_part)(n_rows, numbers, n_vectors * LANES, into, column, n_columns, is_first);
        return;
    }
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++) {
        REAL *to = into[row] + column;
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++) {
            Vector sum = sums[row][one];
            if (!is_first) sum += OF_BYTES(loaded)(to + one * LANES);
            OF_BYTES(stored)(to + one * LANES, sum);
        }
    }
}

#define MULTIPLY_ROWS(n_rows, n_vectors)                                                                           \
    for (; row + n_rows <= all_rows; row += n_rows)                                                                \
        OF_BYTES(multiply_tile)(n_rows, n_vectors, rows + row * step, step, height, panel, into + row, column,     \
                                n_columns - column, is_first);
#define MULTIPLY_PANEL(most_rows, n_vectors)                                                                       \
    static void JOINED(OF_BYTES(multiply_panel), n_vectors)(const REAL *rows, i64 step, i64 all_rows, i64 height,  \
                                                            const REAL *panel, REAL *const *into, i64 column,      \
                                                            i64 n_columns, int is_first) {                         \
        i64 row = 0;                                                                                               \
        MULTIPLY_ROWS(most_rows, n_vectors)                                                                        \
        MULTIPLY_ROWS(4, n_vectors)                                                                                \
        MULTIPLY_ROWS(2, n_vectors)                                                                                \
        MULTIPLY_ROWS(1, n_vectors)                                                                                \
    }

#if MOST_VECTORS == 4
MULTIPLY_PANEL(8, 1)
MULTIPLY_PANEL(8, 2)
MULTIPLY_PANEL(8, 3)
MULTIPLY_PANEL(6, 4)
#else
MULTIPLY_PANEL(8, 1)
MULTIPLY_PANEL(6, 2)
#endif

static void OF_BYTES(multiply)(const REAL *rows, i64 step, i64 n_rows, i64 height, const REAL *packed, i64 n_columns,
                               REAL *const *into, int is_first) {
    i64 n_vectors = (n_columns + LANES - 1) / LANES;
    for (i64 first = 0, size; first < n_vectors; first += size) {
        size = NAMED(panel)(n_vectors, first);
        i64 column = first * LANES;
        const REAL *panel = packed + height * column;
#define WITH(count) JOINED(OF_BYTES(multiply_panel), count)(rows, step, n_rows, height, panel, into, column, n_columns, is_first)
        if (size == 1) WITH(1);
        else if (size == 2) WITH(2);
#if MOST_VECTORS == 4
        else if (size == 3) WITH(3);
        else WITH(4);
#endif
#undef WITH
    }
}

/* Some columns of the left matrix by one panel of the right one, added up over all rows. */
INLINE void OF_BYTES(pair_tile)(const int n_left, const int n_vectors, const REAL *left, i64 left_step,
                                const REAL *right, i64 right_step, i64 n_rows, REAL *into) {
    Vector sums[8][4];
#pragma GCC unroll 8
    for (int one = 0; one < n_left; one++)
#pragma GCC unroll 4
        for (int other = 0; other < n_vectors; other++)
            sums[one][other] = (Vector){0};
    for (i64 row = 0; row < n_rows; row++) {
        Vector numbers[4];
#pragma GCC unroll 4
        for (int other = 0; other < n_vectors; other++)
            numbers[other] = OF_BYTES(loaded)(right + row * right_step + other * LANES);
#pragma GCC unroll 8
        for (int one = 0; one < n_left; one++) {
            REAL number = left[row * left_step + one];
#pragma GCC unroll 4
            for (int other = 0; other < n_vectors; other++) sums[one][other] += number * numbers[other];
        }
    }
#pragma GCC unroll 8
    for (int one = 0; one < n_left; one++)
#pragma GCC unroll 4
        for (int other = 0; other < n_vectors; other++)
            *(Vector *)(into + one * right_step + other * LANES) += sums[one][other];
}

#define PAIR_COLUMNS(count, n_vectors)                                                                             \
    for (; one + count <= n_left; one += count)                                                                    \
        OF_BYTES(pair_tile)(count, n_vectors, left + one, left_step, right + column, n_right, n_rows,              \
                            into + one * n_right + column);
#define PAIR_PANEL(most_left, n_vectors)                                                                           \
    static void JOINED(OF_BYTES(pair_panel), n_vectors)(const REAL *left, i64 left_step, i64 n_left,               \
                                                        const REAL *right, i64 n_right, i64 n_rows, REAL *into,    \
                                                        i64 column) {                                              \
        i64 one = 0;                                                                                               \
        PAIR_COLUMNS(most_left, n_vectors)                                                                         \
        PAIR_COLUMNS(4, n_vectors)                                                                                 \
        PAIR_COLUMNS(2, n_vectors)                                                                                 \
        PAIR_COLUMNS(1, n_vectors)                                                                                 \
    }

#if MOST_VECTORS == 4
PAIR_PANEL(8, 1)
PAIR_PANEL(8, 2)
PAIR_PANEL(8, 3)
PAIR_PANEL(6, 4)
#else
PAIR_PANEL(8, 1)
PAIR_PANEL(6, 2)
#endif

static void OF_BYTES(pair)(const REAL *left, i64 left_step, i64 n_left, const REAL *right, i64 n_right, i64 n_rows,
                           REAL *into) {
    i64 n_vectors = n_right / LANES;
    for (i64 first = 0, size; first < n_vectors; first += size) {
        size = NAMED(panel)(n_vectors, first);
        i64 column = first * LANES;
#define WITH(count) JOINED(OF_BYTES(pair_panel), count)(left, left_step, n_left, right, n_right, n_rows, into, column)
        if (size == 1) WITH(1);
        else if (size == 2) WITH(2);
#if MOST_VECTORS == 4
        else if (size == 3) WITH(3);
        else WITH(4);
#endif
#undef WITH
    }
}

#undef MULTIPLY_ROWS
#undef MULTIPLY_PANEL
#undef PAIR_COLUMNS
#undef PAIR_PANEL
#undef LANES
#undef OF_BYTES
#undef Vector
