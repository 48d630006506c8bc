/* Inner loops of matrix products for vectors of VECTOR_BYTES: a tile of the result stays in registers. */
#define LANES ((i64)(VECTOR_BYTES / sizeof(REAL)))
#define OF_BYTES(name) JOINED(NAMED(name), VECTOR_BYTES)
#define Vector OF_BYTES(Vector)

typedef REAL Vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

/* Write the first columns of a tile to the result, or add them. */
static __attribute__((noinline)) void OF_BYTES(store_columns)(i64 n_rows, const REAL *tile, i64 stride, REAL *const *into,
                                                              i64 column, i64 n_columns, int is_first) {
    for (i64 row = 0; row < n_rows; row++)
        for (i64 one = 0; one < n_columns; one++)
            into[row][column + one] = tile[row * stride + one] + (is_first ? 0 : into[row][column + one]);
}

/* Rows times one panel, whose last vector may reach beyond the result. */
INLINE void OF_BYTES(multiply_tile)(const int n_rows, const int n_vectors, const REAL *rows, i64 stride, i64 height,
                                    const REAL *panel, REAL *const *into, i64 column, i64 n_columns, int is_first) {
    Vector sums[8][4];
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++) sums[row][one] = (Vector){0};
    for (i64 inner = 0; inner < height; inner++) {
        Vector weights[4];
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++)
            weights[one] = *(const Vector *)(panel + (inner * n_vectors + one) * LANES);
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++) {
            REAL value = rows[row * stride + inner];
#pragma GCC unroll 4
            for (int one = 0; one < n_vectors; one++) sums[row][one] += value * weights[one];
        }
    }
    if (n_columns < n_vectors * LANES) {
        REAL tile[8 * 4 * LANES];
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 4
            for (int one = 0; one < n_vectors; one++) *(Vector *)(tile + (row * n_vectors + one) * LANES) = sums[row][one];
        OF_BYTES(store_columns)(n_rows, tile, n_vectors * LANES, into, column, n_columns, is_first);
        return;
    }
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++) {
        REAL *to = into[row] + column;
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++) {
            Vector sum = sums[row][one];
            if (!is_first) sum += *(const Vector *)(to + one * LANES);
            *(Vector *)(to + one * LANES) = sum;
        }
    }
}

/* Columns of the left matrix by one panel of the right one, summed over all rows. */
INLINE void OF_BYTES(transposed_tile)(const int n_left, const int n_vectors, const REAL *left, i64 left_stride,
                                      const REAL *right, i64 right_stride, i64 n_rows, REAL *into) {
    Vector sums[8][4];
#pragma GCC unroll 8
    for (int one = 0; one < n_left; one++)
#pragma GCC unroll 4
        for (int other = 0; other < n_vectors; other++) sums[one][other] = (Vector){0};
    for (i64 row = 0; row < n_rows; row++) {
        Vector values[4];
#pragma GCC unroll 4
        for (int other = 0; other < n_vectors; other++)
            values[other] = *(const Vector *)(right + row * right_stride + other * LANES);
#pragma GCC unroll 8
        for (int one = 0; one < n_left; one++) {
            REAL value = left[row * left_stride + one];
#pragma GCC unroll 4
            for (int other = 0; other < n_vectors; other++) sums[one][other] += value * values[other];
        }
    }
#pragma GCC unroll 8
    for (int one = 0; one < n_left; one++)
#pragma GCC unroll 4
        for (int other = 0; other < n_vectors; other++)
            *(Vector *)(into + one * right_stride + other * LANES) += sums[one][other];
}

#define MULTIPLY_ROWS(count, n_vectors)                                                                            \
    for (; row + count <= n_rows; row += count)                                                                    \
        OF_BYTES(multiply_tile)(count, n_vectors, rows + row * stride, stride, height, panel, into + row, column,  \
                                n_columns - column, is_first);
#define TRANSPOSED_COLUMNS(count, n_vectors)                                                                       \
    for (; one + count <= n_left; one += count)                                                                    \
        OF_BYTES(transposed_tile)(count, n_vectors, left + one, left_stride, right + column, n_right, n_rows,      \
                                  into + one * n_right + column);
#define PANEL(most_rows, n_vectors)                                                                                \
    static void JOINED(OF_BYTES(multiply_panel), n_vectors)(const REAL *rows, i64 stride, i64 n_rows, i64 height,  \
                                                            const REAL *panel, REAL *const *into, i64 column,      \
                                                            i64 n_columns, int is_first) {                         \
        i64 row = 0;                                                                                               \
        MULTIPLY_ROWS(most_rows, n_vectors)                                                                        \
        MULTIPLY_ROWS(4, n_vectors)                                                                                \
        MULTIPLY_ROWS(2, n_vectors)                                                                                \
        MULTIPLY_ROWS(1, n_vectors)                                                                                \
    }                                                                                                              \
    static void JOINED(OF_BYTES(transposed_panel), n_vectors)(const REAL *left, i64 left_stride, i64 n_left,       \
                                                              const REAL *right, i64 n_right, i64 n_rows,          \
                                                              REAL *into, i64 column) {                            \
        i64 one = 0;                                                                                               \
        TRANSPOSED_COLUMNS(most_rows, n_vectors)                                                                   \
        TRANSPOSED_COLUMNS(4, n_vectors)                                                                           \
        TRANSPOSED_COLUMNS(2, n_vectors)                                                                           \
        TRANSPOSED_COLUMNS(1, n_vectors)                                                                           \
    }
PANEL(8, 1)
#if MOST_VECTORS == 4
PANEL(8, 2)
PANEL(8, 3)
PANEL(6, 4)
/* Call the variant of a function for a panel of `size` vectors. */
#define BY_PANEL(name, size, ...)                                       \
    switch (size) {                                                     \
        case 1: JOINED(OF_BYTES(name), 1)(__VA_ARGS__); break;          \
        case 2: JOINED(OF_BYTES(name), 2)(__VA_ARGS__); break;          \
        case 3: JOINED(OF_BYTES(name), 3)(__VA_ARGS__); break;          \
        default: JOINED(OF_BYTES(name), 4)(__VA_ARGS__);                \
    }
#else
PANEL(6, 2)
#define BY_PANEL(name, size, ...)                                       \
    if (size == 1) JOINED(OF_BYTES(name), 1)(__VA_ARGS__);              \
    else JOINED(OF_BYTES(name), 2)(__VA_ARGS__);
#endif

static void OF_BYTES(multiply)(const REAL *rows, i64 stride, i64 n_rows, i64 height, const REAL *packed, i64 n_columns,
                               REAL *const *into, int is_first) {
    i64 n_vectors = (n_columns + LANES - 1) / LANES;
    for (i64 first = 0, size; first < n_vectors; first += size) {
        size = NAMED(panel)(n_vectors, first);
        i64 column = first * LANES;
        BY_PANEL(multiply_panel, size, rows, stride, n_rows, height, packed + height * column, into, column, n_columns, is_first)
    }
}

static void OF_BYTES(multiply_transposed)(const REAL *left, i64 left_stride, i64 n_left, const REAL *right, i64 n_right,
                                          i64 n_rows, REAL *into) {
    for (i64 first = 0, size; first < n_right / LANES; first += size) {
        size = NAMED(panel)(n_right / LANES, first);
        BY_PANEL(transposed_panel, size, left, left_stride, n_left, right, n_right, n_rows, into, first * LANES)
    }
}

#undef MULTIPLY_ROWS
#undef TRANSPOSED_COLUMNS
#undef PANEL
#undef BY_PANEL
#undef LANES
#undef OF_BYTES
#undef Vector
