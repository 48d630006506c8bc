/* Contractions of two tensors, channel by channel: a product of matrices whose numbers are rows of channels.
 *
 * A vector holds as many channels of a row as it has room for, so nothing is transposed: a tile of the result, some
 * rows by some columns of vectors, stays in registers while the summed nodes pass by. Where few channels are left, a
 * vector of the second factor has those of several neighbouring columns, and one of the first those of its row again
 * and again; what is left of it is zero, and is not stored. Both factors are packed in the order in which tiles read
 * them, so many rows and columns at a time as the second cache holds, while those of the next step are fetched.
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
#define PACKED_SUMMED 64 /* so many vectors of every row of a tile fill half of the first cache */
#define PACKED_ROWS 48   /* so many rows and columns of vectors, 64 long, fill half of the second one */
#define PACKED_COLUMNS 96
#define SHARES 4 /* threads take their work in so many shares each, where there is so much; small ones meet in a page */

#define Vector CONTRACT(Vector)
#define Letters CONTRACT(Letters)
#define Piece CONTRACT(Piece)
#define Work CONTRACT(Work)
#define Step CONTRACT(Step)
#define Ahead CONTRACT(Ahead)

typedef REAL Vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

/* Tables of rows, one number for every tuple of nodes: where it lies in the tensors that have these letters. */
typedef struct {
    i64 n_shared, n_left, n_right, n_summed;
    i64 n_rows[3]; /* of a graph in x, y and the result */
    const i64 *shared_x, *shared_y, *shared_result, *left_x, *left_result, *right_y, *right_result;
    const i64 *summed_x, *summed_y;
} Letters;

/* What one thread multiplies at a time: neighbouring channels of one graph and one tuple of shared nodes. */
typedef struct {
    const REAL *x, *y;
    REAL *result;
    i64 step;                /* numbers from row to row: all channels */
    i64 n_lanes;             /* channels that are multiplied */
    i64 n_beside;            /* columns of a vector */
    int fill_y, fill_result; /* whether columns fill vectors as they lie there */
    REAL factor;
} Piece;

INLINE i64 CONTRACT(equal_part)(i64 n_things, i64 most_of_them) {
    i64 n_parts = (n_things + most_of_them - 1) / most_of_them;
    return n_parts ? (n_things + n_parts - 1) / n_parts : 0;
}

/* Fewer numbers than a vector has. */
INLINE void CONTRACT(copy_few)(REAL *to, const REAL *from, i64 n_numbers) {
    if (n_numbers & 8) memcpy(to, from, 8 * sizeof(REAL)), to += 8, from += 8;
    if (n_numbers & 4) memcpy(to, from, 4 * sizeof(REAL)), to += 4, from += 4;
    if (n_numbers & 2) memcpy(to, from, 2 * sizeof(REAL)), to += 2, from += 2;
    if (n_numbers & 1) *to = *from;
}

/* One vector of a factor: the channels of one row, of neighbouring columns, or of one row again and again. */
INLINE void CONTRACT(pack_vector)(const Piece *piece, REAL *to, const REAL *from, const i64 *rows, i64 n_rows,
                                  const int repeated) {
    i64 n_lanes = piece->n_lanes, step = piece->step, n_beside = piece->n_beside;
    const REAL *row = from + rows[0] * step;
    if (n_lanes == LANES || (!repeated && piece->fill_y && n_rows >= n_beside)) {
        *(Vector *)to = *(const Vector *)row;
        return;
    }
    if (repeated && n_lanes == 1) {
        *(Vector *)to = *row - (Vector){0};
        return;
    }
    *(Vector *)to = (Vector){0};
    if (!repeated) n_beside = least(n_beside, n_rows);
    for (i64 one = 0; one < n_beside; one++, to += n_lanes)
        CONTRACT(copy_few)(to, repeated ? row : from + rows[one] * step, n_lanes);
}

/* Whether all rows are packed for one summed node after the other, since they lie so and the processor sees it. */
#define LIES_ACROSS(rows, n_rows, summed, n_summed) \
    ((n_rows) > 1 && (n_summed) > 1 && (rows)[1] - (rows)[0] < (summed)[1] - (summed)[0])

/* Rows of a factor as tiles read them, `width` vectors each: those of the first summed node, then those of the next. */
INLINE void CONTRACT(pack)(const Piece *piece, const REAL *from, const i64 *rows, i64 n_rows, i64 n_vectors, i64 width,
                           const i64 *summed, i64 n_summed, const int repeated, REAL *packed) {
    i64 beside = repeated ? 1 : piece->n_beside;
#define PACK(vector, place)                                                                                           \
    CONTRACT(pack_vector)(piece, packed + (first * n_summed + (place) * here + (vector) - first) * LANES,             \
                          from + summed[place] * piece->step, rows + (vector) * beside, n_rows - (vector) * beside,   \
                          repeated)
    if (LIES_ACROSS(rows, n_rows, summed, n_summed)) {
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
static __attribute__((noinline)) void CONTRACT(store_apart)(const Piece *piece, REAL *sums, i64 n_rows, const i64 *left,
                                                            const i64 *right, i64 n_columns, int is_first) {
    i64 n_lanes = piece->n_lanes, n_beside = piece->n_beside;
    for (i64 row = 0; row < n_rows; row++)
        for (i64 column = 0; column < n_columns; column += n_beside, sums += LANES) {
            i64 n_here = least(n_beside, n_columns - column);
            REAL *to = piece->result + left[row] * piece->step;
            if (piece->fill_result && n_here == n_beside) {
                Vector *there = (Vector *)(to + right[column] * piece->step), sum = *(const Vector *)sums;
                if (!is_first) sum += *there;
                *there = sum;
                continue;
            }
            if (!is_first) {
                REAL before[LANES] __attribute__((aligned(VECTOR_BYTES)));
                *(Vector *)before = (Vector){0};
                for (i64 one = 0; one < n_here; one++)
                    CONTRACT(copy_few)(before + one * n_lanes, to + right[column + one] * piece->step, n_lanes);
                *(Vector *)sums += *(const Vector *)before;
            }
            for (i64 one = 0; one < n_here; one++)
                CONTRACT(copy_few)(to + right[column + one] * piece->step, sums + one * n_lanes, n_lanes);
        }
}

INLINE void CONTRACT(tile)(const int n_rows, const int n_vectors, const Piece *piece, const REAL *x, const REAL *y,
                           i64 n_summed, const i64 *left, const i64 *right, i64 n_columns, int is_first) {
    Vector sums[TILE_ROWS][TILE_COLUMNS];
    int is_whole = piece->n_lanes == LANES;
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 8
        for (int one = 0; one < n_vectors; one++) {
            sums[row][one] = (Vector){0};
            /* What is written has to be fetched as well. */
            if (is_whole) __builtin_prefetch(piece->result + (left[row] + right[one]) * piece->step, 1, 3);
        }
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
    if (!is_whole) {
        REAL apart[TILE_ROWS * TILE_COLUMNS * LANES];
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 8
            for (int one = 0; one < n_vectors; one++)
                *(Vector *)(apart + (row * n_vectors + one) * LANES) = sums[row][one] * piece->factor;
        CONTRACT(store_apart)(piece, apart, n_rows, left, right, n_columns, is_first);
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

#define TILE(rows, vectors)                                                                                           \
    case (rows - 1) * TILE_COLUMNS + vectors - 1:                                                                     \
        CONTRACT(tile)(rows, vectors, piece, x, y, n_summed, left, right, n_columns, is_first);                       \
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

/* ---- what a thread does, step by step */

/* What all threads do. */
typedef struct {
    Letters letters;
    const REAL *x, *y;
    REAL *result;
    REAL factor;
    i64 n_channels, n_vectors;       /* of a row */
    i64 n_parts, n_units, at_a_time; /* parts of the rows of a piece are units, which threads take */
    int fill_y, fill_result;
    _Atomic i64 n_taken; /* units that threads have begun */
} Work;

/* Some rows by a panel of columns, for some of the summed nodes; where it begins, and how far it reaches. */
typedef struct {
    Piece piece;
    i64 unit, last_unit; /* no further than this without taking others; -1 at the end */
    i64 first_row, last_row, n_vectors, high, wide, deep;
    i64 row, vector, place;
} Step;

static void CONTRACT(begin)(Work *work, Step *step, i64 unit) {
    const Letters *letters = &work->letters;
    i64 n_channels = work->n_channels, part = unit % work->n_parts, piece = unit / work->n_parts;
    i64 channel = piece % work->n_vectors * LANES, tuple = piece / work->n_vectors % letters->n_shared;
    i64 graph = piece / work->n_vectors / letters->n_shared, n_lanes = least(LANES, n_channels - channel);
    step->piece = (Piece){
        work->x + (graph * letters->n_rows[0] + letters->shared_x[tuple]) * n_channels + channel,
        work->y + (graph * letters->n_rows[1] + letters->shared_y[tuple]) * n_channels + channel,
        work->result + (graph * letters->n_rows[2] + letters->shared_result[tuple]) * n_channels + channel,
        n_channels, n_lanes, LANES / n_lanes, work->fill_y, work->fill_result, work->factor,
    };
    step->unit = unit;
    step->first_row = step->row = letters->n_left * part / work->n_parts;
    step->last_row = letters->n_left * (part + 1) / work->n_parts;
    step->n_vectors = (letters->n_right + step->piece.n_beside - 1) / step->piece.n_beside;
    step->high = CONTRACT(equal_part)(step->last_row - step->first_row, PACKED_ROWS);
    step->wide = CONTRACT(equal_part)(step->n_vectors, PACKED_COLUMNS);
    step->deep = CONTRACT(equal_part)(letters->n_summed, PACKED_SUMMED);
    step->vector = step->place = 0;
}

/* Units that nobody has begun. */
static void CONTRACT(take)(Work *work, Step *step) {
    i64 unit = atomic_fetch_add(&work->n_taken, work->at_a_time);
    step->unit = -1;
    step->last_unit = least(unit + work->at_a_time, work->n_units);
    if (unit < work->n_units) CONTRACT(begin)(work, step, unit);
}

static void CONTRACT(go_on)(Work *work, Step *step) {
    if ((step->row += step->high) < step->last_row) return;
    step->row = step->first_row;
    if ((step->place += step->deep) < work->letters.n_summed) return;
    step->place = 0;
    if ((step->vector += step->wide) < step->n_vectors) return;
    if (step->unit + 1 < step->last_unit) CONTRACT(begin)(work, step, step->unit + 1);
    else CONTRACT(take)(work, step);
}

/* Rows that will be packed, in the order in which they lie in memory. */
typedef struct {
    const REAL *from;
    const i64 *outer, *inner;
    i64 step, n_outer, n_inner, at_outer, at_inner;
} Ahead;

static Ahead CONTRACT(ahead)(const Piece *piece, const REAL *from, const i64 *rows, i64 n_rows, const i64 *summed,
                             i64 n_summed) {
    if (LIES_ACROSS(rows, n_rows, summed, n_summed)) return (Ahead){from, summed, rows, piece->step, n_summed, n_rows, 0, 0};
    return (Ahead){from, rows, summed, piece->step, n_rows, n_summed, 0, 0};
}

INLINE void CONTRACT(fetch)(Ahead *ahead, i64 n_rows) {
    for (; n_rows && ahead->at_outer < ahead->n_outer; n_rows--) {
        i64 row = ahead->outer[ahead->at_outer] + ahead->inner[ahead->at_inner];
        __builtin_prefetch(ahead->from + row * ahead->step, 0, 2);
        if (++ahead->at_inner == ahead->n_inner) ahead->at_inner = 0, ahead->at_outer++;
    }
}

/* A step, while what the next one packs is fetched from memory: that of large tensors takes longer than the sums. */
static void CONTRACT(do_step)(const Letters *letters, const Step *step, const Step *next, REAL *packed) {
    const Piece *piece = &step->piece;
    i64 beside = piece->n_beside, first_column = step->vector * beside, n_columns = letters->n_right - first_column;
    i64 n_wide = least(step->wide, step->n_vectors - step->vector), across = CONTRACT(equal_part)(n_wide, TILE_COLUMNS);
    i64 n_high = least(step->high, step->last_row - step->row), down = CONTRACT(equal_part)(n_high, TILE_ROWS);
    i64 n_deep = least(step->deep, letters->n_summed - step->place);
    REAL *panel = packed + PACKED_ROWS * PACKED_SUMMED * LANES;
    if (step->row == step->first_row)
        CONTRACT(pack)(piece, piece->y, letters->right_y + first_column, n_columns, n_wide, across,
                       letters->summed_y + step->place, n_deep, 0, panel);
    CONTRACT(pack)(piece, piece->x, letters->left_x + step->row, n_high, n_high, down, letters->summed_x + step->place,
                   n_deep, 1, packed);
    Ahead x = {0}, y = {0};
    if (next->unit >= 0 && next->piece.step >= LANES) { /* else rows share lines of the cache */
        i64 place = next->place, n_next = least(next->deep, letters->n_summed - place), of_next = next->piece.n_beside;
        i64 column = next->vector * of_next, n_of_next = least(next->wide * of_next, letters->n_right - column);
        x = CONTRACT(ahead)(&next->piece, next->piece.x, letters->left_x + next->row,
                            least(next->high, next->last_row - next->row), letters->summed_x + place, n_next);
        if (next->row == next->first_row)
            y = CONTRACT(ahead)(&next->piece, next->piece.y, letters->right_y + column, n_of_next,
                                letters->summed_y + place, n_next);
    }
    i64 n_tiles = ((n_wide + across - 1) / across) * ((n_high + down - 1) / down);
    i64 x_rows = (x.n_outer * x.n_inner + n_tiles - 1) / n_tiles;
    i64 y_rows = (y.n_outer * y.n_inner + n_tiles - 1) / n_tiles;
    for (i64 one = 0; one < n_high; one += down)
        for (i64 other = 0; other < n_wide; other += across) {
            i64 n_here = least(across, n_wide - other);
            CONTRACT(fetch)(&y, y_rows);
            CONTRACT(fetch)(&x, x_rows);
            CONTRACT(any_tile)(least(down, n_high - one), n_here, piece, packed + one * n_deep * LANES,
                               panel + other * n_deep * LANES, n_deep, letters->left_result + step->row + one,
                               letters->right_result + first_column + other * beside,
                               least(n_here * beside, n_columns - other * beside), step->place == 0);
        }
}

/* The contraction of two tensors times a number; `tables` says which rows meet. 0 is returned if there was memory. */
EXPORTED i64 JOINED(bellnet_contract, TYPE)(const ContractCall *call) {
    const i64 *tables = call->tables;
    i64 n_channels = call->n_channels, n_threads = call->n_threads;
    Letters letters = {.n_shared = tables[0], .n_left = tables[1], .n_right = tables[2], .n_summed = tables[3],
                       .n_rows = {tables[4], tables[5], tables[6]}};
    letters.shared_x = tables + 7;
    letters.shared_y = letters.shared_x + letters.n_shared;
    letters.shared_result = letters.shared_y + letters.n_shared;
    letters.left_x = letters.shared_result + letters.n_shared;
    letters.left_result = letters.left_x + letters.n_left;
    letters.right_y = letters.left_result + letters.n_left;
    letters.right_result = letters.right_y + letters.n_right;
    letters.summed_x = letters.right_result + letters.n_right;
    letters.summed_y = letters.summed_x + letters.n_summed;

    i64 n_vectors = (n_channels + LANES - 1) / LANES, n_pieces = call->n_graphs * letters.n_shared * n_vectors;
    /* Rows are shared among threads as well where there are too few pieces; every part packs the columns anew. */
    int are_few = n_pieces % n_threads && n_pieces < SHARES * n_threads;
    i64 n_parts = are_few ? least(n_threads, letters.n_left) : 1;
    i64 n_units = n_pieces * n_parts, at_a_time = most(n_units / (SHARES * n_threads), 1);
    int fill_y = LANES % n_channels == 0, fill_result = fill_y;
    for (i64 one = 1; one < letters.n_right && (fill_y || fill_result); one++) {
        fill_y &= letters.right_y[one] == letters.right_y[0] + one;
        fill_result &= letters.right_result[one] == letters.right_result[0] + one;
    }
    Work work = {.letters = letters, .x = call->x, .y = call->y, .result = call->result, .factor = (REAL)call->factor,
                 .n_channels = n_channels, .n_vectors = n_vectors, .n_parts = n_parts, .n_units = n_units,
                 .at_a_time = at_a_time, .fill_y = fill_y, .fill_result = fill_result};
    i64 room = (PACKED_ROWS + PACKED_COLUMNS) * PACKED_SUMMED * LANES;
    REAL *memory = take_block(n_threads * room * sizeof(REAL));
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        Step step, next;
        CONTRACT(take)(&work, &step);
        for (; step.unit >= 0; step = next) {
            next = step;
            CONTRACT(go_on)(&work, &next);
            CONTRACT(do_step)(&work.letters, &step, &next, memory + team.number * room);
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
#undef SHARES
#undef Vector
#undef Letters
#undef Piece
#undef Work
#undef Step
#undef Ahead
#undef LIES_ACROSS
