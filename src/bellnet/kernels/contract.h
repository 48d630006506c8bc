/* Contractions of two tensors, channel by channel: a product of matrices whose numbers are rows of channels.
 *
 * A vector holds as many channels of a row as it has room for, so nothing is transposed: a tile of the result, some rows
 * by some columns of vectors, stays in registers while the summed nodes pass by. Where few channels are left, a vector
 * has those of several neighbouring columns, and those of a row as often beside each other. Both factors are packed in
 * the order in which tiles read them, a panel of columns for the second cache and some rows for the first. Numbers
 * behind the last channel or column are zero in both factors and are not stored, so that channels never meet.
 */
#define CONTRACT(name) JOINED(JOINED(contract, name), TYPE)

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define TILE_ROWS 4
#define TILE_COLUMNS 4
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define TILE_ROWS 4
#define TILE_COLUMNS 3
#else
#define VECTOR_BYTES 16
#define TILE_ROWS 3
#define TILE_COLUMNS 3
#endif
#define LANES ((i64)(VECTOR_BYTES / sizeof(REAL)))
#define PACKED_SUMMED 64   /* rows of a tile, so many summed nodes long, fill half of the first cache */
#define PACKED_ROWS 48     /* so many rows and columns of vectors fill half of the second one */
#define PACKED_COLUMNS 96
#define UNITS_AT_A_TIME 16 /* parts that the work of each thread has at least, where there are so many */

#define Vector CONTRACT(Vector)
#define Letters CONTRACT(Letters)
#define Piece CONTRACT(Piece)

typedef REAL Vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

/* Tables of rows, one number for every tuple of nodes: where it lies in the tensors that have these letters. */
typedef struct {
    i64 n_shared, n_left, n_right, n_summed;
    i64 n_rows[3]; /* of a graph in x, y and the result */
    const i64 *shared_x, *shared_y, *shared_result, *left_x, *left_result, *right_y, *right_result, *summed_x, *summed_y;
} Letters;

/* What one thread multiplies at a time: neighbouring channels of one graph and one tuple of shared nodes. */
typedef struct {
    const REAL *x, *y;
    REAL *result;
    i64 step;    /* numbers from row to row: all channels */
    i64 n_lanes; /* channels that are multiplied */
    i64 n_beside; /* columns of a vector */
    REAL factor;
} Piece;

INLINE i64 CONTRACT(equal_part)(i64 n_things, i64 most_of_them) {
    i64 n_parts = (n_things + most_of_them - 1) / most_of_them;
    return n_parts ? (n_things + n_parts - 1) / n_parts : 0;
}

/* Less numbers than a vector has. */
INLINE void CONTRACT(copy_few)(REAL *to, const REAL *from, i64 n_numbers) {
    if (n_numbers & 8) memcpy(to, from, 8 * sizeof(REAL)), to += 8, from += 8;
    if (n_numbers & 4) memcpy(to, from, 4 * sizeof(REAL)), to += 4, from += 4;
    if (n_numbers & 2) memcpy(to, from, 2 * sizeof(REAL)), to += 2, from += 2;
    if (n_numbers & 1) *to = *from;
}

/* One vector of a factor: the channels of one row, of neighbouring columns, or of one row again and again. */
INLINE void CONTRACT(pack_vector)(const Piece *piece, REAL *to, const REAL *from, const i64 *rows, i64 n_rows,
                                  const int repeated) {
    i64 n_lanes = piece->n_lanes, step = piece->step;
    if (n_lanes == LANES) {
        *(Vector *)to = *(const Vector *)(from + rows[0] * step);
        return;
    }
    REAL *end = to + LANES;
    for (i64 one = 0; one < piece->n_beside && (repeated || one < n_rows); one++, to += n_lanes)
        CONTRACT(copy_few)(to, from + rows[repeated ? 0 : one] * step, n_lanes);
    while (to < end) *to++ = 0;
}

/* Rows of a factor as tiles read them, `width` vectors each: those of the first summed node, then those of the next. */
INLINE void CONTRACT(pack)(const Piece *piece, const REAL *from, const i64 *rows, i64 n_rows, i64 n_vectors, i64 width,
                           const i64 *summed, i64 n_summed, const int repeated, REAL *packed) {
    i64 beside = repeated ? 1 : piece->n_beside;
#define PACK(vector, place)                                                                                           \
    CONTRACT(pack_vector)(piece, packed + (first * n_summed + (place) * here + (vector) - first) * LANES,             \
                          from + summed[place] * piece->step, rows + (vector) * beside, n_rows - (vector) * beside,   \
                          repeated)
    /* In the order in which they lie in memory, so that the processor knows what comes next. */
    if (n_rows > 1 && n_summed > 1 && rows[1] - rows[0] < summed[1] - summed[0]) {
        for (i64 place = 0; place < n_summed; place++)
            for (i64 first = 0, here; first < n_vectors; first += width) {
                here = least(width, n_vectors - first);
                for (i64 vector = first; vector < first + here; vector++) PACK(vector, place);
            }
        return;
    }
    for (i64 first = 0, here; first < n_vectors; first += width) {
        here = least(width, n_vectors - first);
        for (i64 vector = first; vector < first + here; vector++)
            for (i64 place = 0; place < n_summed; place++) PACK(vector, place);
    }
#undef PACK
}

/* A tile whose vectors are no neighbouring channels of one row each. */
static __attribute__((noinline)) void CONTRACT(store_apart)(const Piece *piece, const REAL *sums, i64 n_rows,
                                                            const i64 *left, i64 n_vectors, const i64 *right,
                                                            i64 n_columns, int is_first) {
    i64 n_lanes = piece->n_lanes, n_beside = piece->n_beside;
    for (i64 row = 0; row < n_rows; row++)
        for (i64 column = 0; column < n_columns; column++) {
            REAL *to = piece->result + (left[row] + right[column]) * piece->step;
            const REAL *from = sums + (row * n_vectors + column / n_beside) * LANES + column % n_beside * n_lanes;
            for (i64 lane = 0; lane < n_lanes; lane++) to[lane] = from[lane] + (is_first ? 0 : to[lane]);
        }
}

INLINE void CONTRACT(tile)(const int n_rows, const int n_vectors, const Piece *piece, const REAL *x, const REAL *y,
                           i64 n_summed, const i64 *left, const i64 *right, i64 n_columns, int is_first) {
    Vector sums[TILE_ROWS][TILE_COLUMNS];
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 8
        for (int one = 0; one < n_vectors; one++) sums[row][one] = (Vector){0};
    for (i64 place = 0; place < n_summed; place++, x += n_rows * LANES, y += n_vectors * LANES) {
        Vector columns[TILE_COLUMNS];
#pragma GCC unroll 8
        for (int one = 0; one < n_vectors; one++) columns[one] = *(const Vector *)(y + one * LANES);
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++) {
            Vector numbers = *(const Vector *)(x + row * LANES);
#pragma GCC unroll 8
            for (int one = 0; one < n_vectors; one++) sums[row][one] += numbers * columns[one];
        }
    }
    if (piece->n_lanes < LANES) {
        REAL apart[TILE_ROWS * TILE_COLUMNS * LANES];
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 8
            for (int one = 0; one < n_vectors; one++)
                *(Vector *)(apart + (row * n_vectors + one) * LANES) = sums[row][one] * piece->factor;
        CONTRACT(store_apart)(piece, apart, n_rows, left, n_vectors, right, n_columns, is_first);
        return;
    }
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 8
        for (int one = 0; one < n_vectors; one++) {
            REAL *to = piece->result + (left[row] + right[one]) * piece->step;
            Vector sum = sums[row][one] * piece->factor;
            if (!is_first) sum += *(const Vector *)to;
            *(Vector *)to = sum;
        }
}

#define TILE(rows, vectors) \
    case (rows - 1) * TILE_COLUMNS + vectors - 1: \
        CONTRACT(tile)(rows, vectors, piece, x, y, n_summed, left, right, n_columns, is_first); \
        break;
static void CONTRACT(any_tile)(i64 n_rows, i64 n_vectors, const Piece *piece, const REAL *x, const REAL *y,
                               i64 n_summed, const i64 *left, const i64 *right, i64 n_columns, int is_first) {
    switch ((n_rows - 1) * TILE_COLUMNS + n_vectors - 1) {
        TILE(1, 1) TILE(1, 2) TILE(1, 3)
        TILE(2, 1) TILE(2, 2) TILE(2, 3)
        TILE(3, 1) TILE(3, 2) TILE(3, 3)
#if TILE_ROWS == 4
        TILE(4, 1) TILE(4, 2) TILE(4, 3)
#endif
#if TILE_COLUMNS == 4
        TILE(1, 4) TILE(2, 4) TILE(3, 4) TILE(4, 4)
#endif
    }
}
#undef TILE

/* Some of the rows of a piece by all columns. */
static void CONTRACT(multiply)(const Piece *piece, const Letters *letters, i64 first_row, i64 last_row, REAL *packed) {
    i64 beside = piece->n_beside, n_vectors = (letters->n_right + beside - 1) / beside;
    i64 wide = CONTRACT(equal_part)(n_vectors, PACKED_COLUMNS);
    i64 deep = CONTRACT(equal_part)(letters->n_summed, PACKED_SUMMED);
    i64 high = CONTRACT(equal_part)(last_row - first_row, PACKED_ROWS);
    REAL *panel = packed + PACKED_ROWS * PACKED_SUMMED * LANES;
    for (i64 vector = 0; vector < n_vectors; vector += wide) {
        i64 n_wide = least(wide, n_vectors - vector), n_columns = letters->n_right - vector * beside;
        i64 across = CONTRACT(equal_part)(n_wide, TILE_COLUMNS);
        const i64 *columns = letters->right_result + vector * beside;
        for (i64 place = 0; place < letters->n_summed; place += deep) {
            i64 n_deep = least(deep, letters->n_summed - place);
            CONTRACT(pack)(piece, piece->y, letters->right_y + vector * beside, n_columns, n_wide, across,
                           letters->summed_y + place, n_deep, 0, panel);
            for (i64 row = first_row; row < last_row; row += high) {
                i64 n_high = least(high, last_row - row), down = CONTRACT(equal_part)(n_high, TILE_ROWS);
                CONTRACT(pack)(piece, piece->x, letters->left_x + row, n_high, n_high, down, letters->summed_x + place,
                               n_deep, 1, packed);
                for (i64 one = 0; one < n_high; one += down)
                    for (i64 other = 0; other < n_wide; other += across) {
                        i64 n_here = least(across, n_wide - other);
                        CONTRACT(any_tile)(least(down, n_high - one), n_here, piece, packed + one * n_deep * LANES,
                                           panel + other * n_deep * LANES, n_deep, letters->left_result + row + one,
                                           columns + other * beside, least(n_here * beside, n_columns - other * beside),
                                           place == 0);
                    }
            }
        }
    }
}

/* The contraction of two tensors times a number; `tables` says which rows meet, 0 is returned if there was memory. */
EXPORTED i64 JOINED(bellnet_contract, TYPE)(const i64 *tables, i64 n_graphs, i64 n_channels, i64 n_threads,
                                            const REAL *x, const REAL *y, REAL *result, double factor) {
    Letters letters = {tables[0], tables[1], tables[2], tables[3], {tables[4], tables[5], tables[6]}};
    const i64 **table[] = {&letters.shared_x,     &letters.shared_y,  &letters.shared_result,
                           &letters.left_x,       &letters.left_result, &letters.right_y,
                           &letters.right_result, &letters.summed_x,  &letters.summed_y};
    const i64 lengths[] = {letters.n_shared, letters.n_shared, letters.n_shared, letters.n_left,  letters.n_left,
                           letters.n_right,  letters.n_right,  letters.n_summed, letters.n_summed};
    const i64 *next = tables + 7;
    for (int one = 0; one < 9; next += lengths[one], one++) *table[one] = next;

    i64 n_vectors = (n_channels + LANES - 1) / LANES, n_pieces = n_graphs * letters.n_shared * n_vectors;
    /* Rows are shared among threads as well where there are too few pieces; every part packs the columns anew. */
    i64 n_parts = n_pieces % n_threads && n_pieces < UNITS_AT_A_TIME * n_threads ? least(n_threads, letters.n_left) : 1;
    i64 n_units = n_pieces * n_parts, at_a_time = most(n_units / (UNITS_AT_A_TIME * n_threads), 1);
    i64 room = (PACKED_ROWS + PACKED_COLUMNS) * PACKED_SUMMED * LANES;
    REAL *memory = take_block(n_threads * room * sizeof(REAL));
    if (!memory) return 1;
    _Atomic i64 n_taken = 0;
    DO_IN_PARALLEL(n_threads, {
        REAL *packed = memory + team.number * room;
        for (i64 first; (first = atomic_fetch_add(&n_taken, at_a_time)) < n_units;)
            for (i64 unit = first; unit < least(first + at_a_time, n_units); unit++) {
                i64 part = unit % n_parts;
                i64 channel = unit / n_parts % n_vectors * LANES;
                i64 tuple = unit / n_parts / n_vectors % letters.n_shared;
                i64 graph = unit / n_parts / n_vectors / letters.n_shared;
                i64 n_lanes = least(LANES, n_channels - channel);
                Piece piece = {
                    x + (graph * letters.n_rows[0] + letters.shared_x[tuple]) * n_channels + channel,
                    y + (graph * letters.n_rows[1] + letters.shared_y[tuple]) * n_channels + channel,
                    result + (graph * letters.n_rows[2] + letters.shared_result[tuple]) * n_channels + channel,
                    n_channels, n_lanes, LANES / n_lanes, (REAL)factor,
                };
                CONTRACT(multiply)(&piece, &letters, letters.n_left * part / n_parts,
                                   letters.n_left * (part + 1) / n_parts, packed);
            }
    })
    give_block(memory);
    return 0;
}

#undef CONTRACT
#undef VECTOR_BYTES
#undef TILE_ROWS
#undef TILE_COLUMNS
#undef LANES
#undef PACKED_SUMMED
#undef PACKED_ROWS
#undef PACKED_COLUMNS
#undef UNITS_AT_A_TIME
#undef Vector
#undef Letters
#undef Piece
