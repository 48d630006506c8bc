/* Products of two tensors, channel by channel: matrix products whose entries are rows of channels.
 *
 * A vector holds channels of one row, so nothing is transposed: a tile of the result, some rows by some columns of vectors,
 * stays in registers during the sum. With few channels a vector of the second factor holds several neighbouring columns,
 * and one of the first factor repeats its row. Both factors are packed in the order in which tiles read them, as many
 * rows and columns at a time as the second-level cache holds, while those of the next task are prefetched.
 */
#define PRODUCT(name) JOINED(JOINED(product, name), TYPE)

#define TILE_ROWS (MOST_BYTES == 16 ? 3 : 4)
#define TILE_COLUMNS (MOST_BYTES == 64 ? 4 : 3)
#define PACKED_SUMMED 64 /* vectors of every row of a tile that fill half of the first-level cache */
#define PACKED_ROWS 48   /* rows and columns of vectors, 64 long, that fill half of the second-level cache */
#define PACKED_COLUMNS 96
#define SHARES 4 /* shares of work that each thread takes, if there is enough; small ones meet in a page */

#define Letters PRODUCT(Letters)
#define Piece PRODUCT(Piece)
#define Work PRODUCT(Work)
#define Task PRODUCT(Task)
#define Prefetch PRODUCT(Prefetch)

/* Tables of rows: for every tuple of nodes of some letters its row in the tensors that have these letters. */
typedef struct {
    i64 n_shared, n_left, n_right, n_summed;
    i64 n_rows[3]; /* of a graph in x, y and the result */
    const i64 *shared_x, *shared_y, *shared_result, *left_x, *left_result, *right_y, *right_result;
    const i64 *summed_x, *summed_y;
} Letters;

/* What a thread multiplies at a time: neighbouring channels of one graph and one tuple of shared nodes. */
typedef struct {
    const REAL *x, *y;
    REAL *result;
    i64 stride;              /* from row to row: all channels */
    i64 n_lanes;             /* channels that are multiplied */
    i64 n_repeats;           /* columns in a vector */
    int fill_y, fill_result; /* whether neighbouring columns fill a vector in memory */
    REAL factor;
} Piece;

/* n_items in parts of equal size, at most `limit`: the size. */
INLINE i64 PRODUCT(equal_part)(i64 n_items, i64 limit) {
    i64 n_parts = (n_items + limit - 1) / limit;
    return n_parts ? (n_items + n_parts - 1) / n_parts : 0;
}

/* Copy fewer values than a vector has. */
INLINE void PRODUCT(copy_few)(REAL *to, const REAL *from, i64 n_values) {
    if (n_values & 8) memcpy(to, from, 8 * sizeof(REAL)), to += 8, from += 8;
    if (n_values & 4) memcpy(to, from, 4 * sizeof(REAL)), to += 4, from += 4;
    if (n_values & 2) memcpy(to, from, 2 * sizeof(REAL)), to += 2, from += 2;
    if (n_values & 1) *to = *from;
}

/* Pack one vector of a factor: channels of one row, of neighbouring columns, or of one row repeated. */
INLINE void PRODUCT(pack_vector)(const Piece *piece, REAL *to, const REAL *from, const i64 *rows, i64 n_rows,
                                 const int is_repeated) {
    i64 n_lanes = piece->n_lanes, stride = piece->stride, n_repeats = piece->n_repeats;
    const REAL *row = from + rows[0] * stride;
    if (n_lanes == WIDE || (!is_repeated && piece->fill_y && n_rows >= n_repeats)) {
        *(Wide *)to = *(const Wide *)row;
        return;
    }
    if (is_repeated && n_lanes == 1) {
        *(Wide *)to = *row - (Wide){0};
        return;
    }
    *(Wide *)to = (Wide){0};
    if (!is_repeated) n_repeats = least(n_repeats, n_rows);
    for (i64 one = 0; one < n_repeats; one++, to += n_lanes)
        PRODUCT(copy_few)(to, is_repeated ? row : from + rows[one] * stride, n_lanes);
}

/* Whether rows are packed one summed node after the other, because they lie in this order in memory. */
#define LIES_ACROSS(rows, n_rows, summed, n_summed) \
    ((n_rows) > 1 && (n_summed) > 1 && (rows)[1] - (rows)[0] < (summed)[1] - (summed)[0])

/* Pack rows of a factor as tiles read them, `width` vectors each: those of the first summed node, then of the next. */
INLINE void PRODUCT(pack)(const Piece *piece, const REAL *from, const i64 *rows, i64 n_rows, i64 n_vectors, i64 width,
                          const i64 *summed, i64 n_summed, const int is_repeated, REAL *packed) {
    i64 beside = is_repeated ? 1 : piece->n_repeats;
#define PACK(vector, inner)                                                                                            \
    PRODUCT(pack_vector)(piece, packed + (first * n_summed + (inner) * here + (vector) - first) * WIDE,               \
                         from + summed[inner] * piece->stride, rows + (vector) * beside, n_rows - (vector) * beside,   \
                         is_repeated)
    if (LIES_ACROSS(rows, n_rows, summed, n_summed)) {
        for (i64 inner = 0; inner < n_summed; inner++)
            for (i64 first = 0, here; first < n_vectors; first += width) {
                here = least(width, n_vectors - first);
                for (i64 vector = first; vector < first + here; vector++) PACK(vector, inner);
            }
        return;
    }
    for (i64 first = 0, here; first < n_vectors; first += width) {
        here = least(width, n_vectors - first);
        for (i64 vector = first; vector < first + here; vector++)
            for (i64 inner = 0; inner < n_summed; inner++) PACK(vector, inner);
    }
#undef PACK
}

/* Store a tile whose vectors are not neighbouring channels of one row. */
static __attribute__((noinline)) void PRODUCT(store_lanes)(const Piece *piece, REAL *sums, i64 n_rows, const i64 *left,
                                                           const i64 *right, i64 n_columns, int is_first) {
    i64 n_lanes = piece->n_lanes, n_repeats = piece->n_repeats;
    for (i64 row = 0; row < n_rows; row++)
        for (i64 column = 0; column < n_columns; column += n_repeats, sums += WIDE) {
            i64 n_here = least(n_repeats, n_columns - column);
            REAL *to = piece->result + left[row] * piece->stride;
            if (piece->fill_result && n_here == n_repeats) {
                Wide *stored = (Wide *)(to + right[column] * piece->stride), sum = *(const Wide *)sums;
                if (!is_first) sum += *stored;
                *stored = sum;
                continue;
            }
            if (!is_first) {
                REAL before[WIDE] __attribute__((aligned(MOST_BYTES)));
                *(Wide *)before = (Wide){0};
                for (i64 one = 0; one < n_here; one++)
                    PRODUCT(copy_few)(before + one * n_lanes, to + right[column + one] * piece->stride, n_lanes);
                *(Wide *)sums += *(const Wide *)before;
            }
            for (i64 one = 0; one < n_here; one++)
                PRODUCT(copy_few)(to + right[column + one] * piece->stride, sums + one * n_lanes, n_lanes);
        }
}

INLINE void PRODUCT(tile)(const int n_rows, const int n_vectors, const Piece *piece, const REAL *x, const REAL *y,
                          i64 n_summed, const i64 *left, const i64 *right, i64 n_columns, int is_first) {
    Wide sums[TILE_ROWS][TILE_COLUMNS];
    int is_whole = piece->n_lanes == WIDE;
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 8
        for (int one = 0; one < n_vectors; one++) {
            sums[row][one] = (Wide){0};
            if (is_whole) __builtin_prefetch(piece->result + (left[row] + right[one]) * piece->stride, 1, 3);
        }
    for (i64 inner = 0; inner < n_summed; inner++, x += n_rows * WIDE, y += n_vectors * WIDE) {
        Wide columns[TILE_COLUMNS];
#pragma GCC unroll 8
        for (int one = 0; one < n_vectors; one++) columns[one] = *(const Wide *)(y + one * WIDE);
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++) {
            Wide values = *(const Wide *)(x + row * WIDE);
#pragma GCC unroll 8
            for (int one = 0; one < n_vectors; one++) sums[row][one] += values * columns[one];
        }
    }
    if (!is_whole) {
        REAL lanes[TILE_ROWS * TILE_COLUMNS * WIDE];
#pragma GCC unroll 8
        for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 8
            for (int one = 0; one < n_vectors; one++)
                *(Wide *)(lanes + (row * n_vectors + one) * WIDE) = sums[row][one] * piece->factor;
        PRODUCT(store_lanes)(piece, lanes, n_rows, left, right, n_columns, is_first);
        return;
    }
#pragma GCC unroll 8
    for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 8
        for (int one = 0; one < n_vectors; one++) {
            REAL *to = piece->result + (left[row] + right[one]) * piece->stride;
            Wide sum = sums[row][one] * piece->factor;
            if (!is_first) sum += *(const Wide *)to;
            *(Wide *)to = sum;
        }
}

#define TILE(rows, vectors)                                                                                           \
    case (rows - 1) * 4 + vectors - 1:                                                                                \
        PRODUCT(tile)(rows, vectors, piece, x, y, n_summed, left, right, n_columns, is_first);                        \
        break;
static void PRODUCT(any_tile)(i64 n_rows, i64 n_vectors, const Piece *piece, const REAL *x, const REAL *y,
                              i64 n_summed, const i64 *left, const i64 *right, i64 n_columns, int is_first) {
    switch ((n_rows - 1) * 4 + n_vectors - 1) {
        TILE(1, 1) TILE(1, 2) TILE(1, 3)
        TILE(2, 1) TILE(2, 2) TILE(2, 3)
        TILE(3, 1) TILE(3, 2) TILE(3, 3)
#if MOST_BYTES >= 32
        TILE(4, 1) TILE(4, 2) TILE(4, 3)
#endif
#if MOST_BYTES == 64
        TILE(1, 4) TILE(2, 4) TILE(3, 4) TILE(4, 4)
#endif
    }
}
#undef TILE

/* ---- tasks of a thread */

/* The work of all threads. */
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

/* Rows by a panel of columns, for some of the summed nodes: where it begins, and its size. */
typedef struct {
    Piece piece;
    i64 unit, last_unit; /* the current one, -1 at the end, and that before which others are taken */
    i64 first_row, last_row, n_vectors, high, wide, deep;
    i64 row, vector, inner;
} Task;

static void PRODUCT(begin_unit)(Work *work, Task *task, i64 unit) {
    const Letters *letters = &work->letters;
    i64 n_channels = work->n_channels, part = unit % work->n_parts, piece = unit / work->n_parts;
    i64 channel = piece % work->n_vectors * WIDE, tuple = piece / work->n_vectors % letters->n_shared;
    i64 graph = piece / work->n_vectors / letters->n_shared, n_lanes = least(WIDE, n_channels - channel);
    task->piece = (Piece){
        work->x + (graph * letters->n_rows[0] + letters->shared_x[tuple]) * n_channels + channel,
        work->y + (graph * letters->n_rows[1] + letters->shared_y[tuple]) * n_channels + channel,
        work->result + (graph * letters->n_rows[2] + letters->shared_result[tuple]) * n_channels + channel,
        n_channels, n_lanes, WIDE / n_lanes, work->fill_y, work->fill_result, work->factor,
    };
    task->unit = unit;
    task->first_row = task->row = letters->n_left * part / work->n_parts;
    task->last_row = letters->n_left * (part + 1) / work->n_parts;
    task->n_vectors = (letters->n_right + task->piece.n_repeats - 1) / task->piece.n_repeats;
    task->high = PRODUCT(equal_part)(task->last_row - task->first_row, PACKED_ROWS);
    task->wide = PRODUCT(equal_part)(task->n_vectors, PACKED_COLUMNS);
    task->deep = PRODUCT(equal_part)(letters->n_summed, PACKED_SUMMED);
    task->vector = task->inner = 0;
}

/* Take units that no thread has begun. */
static void PRODUCT(take_units)(Work *work, Task *task) {
    i64 unit = atomic_fetch_add(&work->n_taken, work->at_a_time);
    task->unit = -1;
    task->last_unit = least(unit + work->at_a_time, work->n_units);
    if (unit < work->n_units) PRODUCT(begin_unit)(work, task, unit);
}

static void PRODUCT(advance)(Work *work, Task *task) {
    if ((task->row += task->high) < task->last_row) return;
    task->row = task->first_row;
    if ((task->inner += task->deep) < work->letters.n_summed) return;
    task->inner = 0;
    if ((task->vector += task->wide) < task->n_vectors) return;
    if (task->unit + 1 < task->last_unit) PRODUCT(begin_unit)(work, task, task->unit + 1);
    else PRODUCT(take_units)(work, task);
}

/* Rows that the next task packs, in the order in which they lie in memory. */
typedef struct {
    const REAL *from;
    const i64 *outer, *inner;
    i64 stride, n_outer, n_inner, at_outer, at_inner;
} Prefetch;

static Prefetch PRODUCT(plan_prefetch)(const Piece *piece, const REAL *from, const i64 *rows, i64 n_rows, const i64 *summed,
                                       i64 n_summed) {
    if (LIES_ACROSS(rows, n_rows, summed, n_summed)) return (Prefetch){from, summed, rows, piece->stride, n_summed, n_rows, 0, 0};
    return (Prefetch){from, rows, summed, piece->stride, n_rows, n_summed, 0, 0};
}

INLINE void PRODUCT(prefetch)(Prefetch *next, i64 n_rows) {
    for (; n_rows && next->at_outer < next->n_outer; n_rows--) {
        i64 row = next->outer[next->at_outer] + next->inner[next->at_inner];
        __builtin_prefetch(next->from + row * next->stride, 0, 2);
        if (++next->at_inner == next->n_inner) next->at_inner = 0, next->at_outer++;
    }
}

/* Run a task and prefetch what the next one packs: for large tensors memory takes longer than the sums. */
static void PRODUCT(run_task)(const Letters *letters, const Task *task, const Task *next, REAL *packed) {
    const Piece *piece = &task->piece;
    i64 beside = piece->n_repeats, first_column = task->vector * beside, n_columns = letters->n_right - first_column;
    i64 n_wide = least(task->wide, task->n_vectors - task->vector), across = PRODUCT(equal_part)(n_wide, TILE_COLUMNS);
    i64 n_high = least(task->high, task->last_row - task->row), down = PRODUCT(equal_part)(n_high, TILE_ROWS);
    i64 n_deep = least(task->deep, letters->n_summed - task->inner);
    REAL *panel = packed + PACKED_ROWS * PACKED_SUMMED * WIDE;
    if (task->row == task->first_row)
        PRODUCT(pack)(piece, piece->y, letters->right_y + first_column, n_columns, n_wide, across,
                      letters->summed_y + task->inner, n_deep, 0, panel);
    PRODUCT(pack)(piece, piece->x, letters->left_x + task->row, n_high, n_high, down, letters->summed_x + task->inner,
                  n_deep, 1, packed);
    Prefetch x = {0}, y = {0};
    if (next->unit >= 0 && next->piece.stride >= WIDE) { /* else rows share cache lines */
        i64 inner = next->inner, n_next = least(next->deep, letters->n_summed - inner), of_next = next->piece.n_repeats;
        i64 column = next->vector * of_next, n_of_next = least(next->wide * of_next, letters->n_right - column);
        x = PRODUCT(plan_prefetch)(&next->piece, next->piece.x, letters->left_x + next->row,
                                   least(next->high, next->last_row - next->row), letters->summed_x + inner, n_next);
        if (next->row == next->first_row)
            y = PRODUCT(plan_prefetch)(&next->piece, next->piece.y, letters->right_y + column, n_of_next,
                                       letters->summed_y + inner, n_next);
    }
    i64 n_tiles = ((n_wide + across - 1) / across) * ((n_high + down - 1) / down);
    i64 x_rows = (x.n_outer * x.n_inner + n_tiles - 1) / n_tiles;
    i64 y_rows = (y.n_outer * y.n_inner + n_tiles - 1) / n_tiles;
    for (i64 one = 0; one < n_high; one += down)
        for (i64 other = 0; other < n_wide; other += across) {
            i64 n_here = least(across, n_wide - other);
            PRODUCT(prefetch)(&y, y_rows);
            PRODUCT(prefetch)(&x, x_rows);
            PRODUCT(any_tile)(least(down, n_high - one), n_here, piece, packed + one * n_deep * WIDE,
                              panel + other * n_deep * WIDE, n_deep, letters->left_result + task->row + one,
                              letters->right_result + first_column + other * beside,
                              least(n_here * beside, n_columns - other * beside), task->inner == 0);
        }
}

/* The product of two tensors times a factor; `tables` has the rows that are multiplied. */
EXPORTED i64 NAMED(bellnet_product)(const ProductCall *call) {
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

    i64 n_vectors = (n_channels + WIDE - 1) / WIDE, n_pieces = call->n_graphs * letters.n_shared * n_vectors;
    /* With few pieces threads share their rows as well; every part packs the columns again. */
    int are_few = n_pieces % n_threads && n_pieces < SHARES * n_threads;
    i64 n_parts = are_few ? least(n_threads, letters.n_left) : 1;
    i64 n_units = n_pieces * n_parts, at_a_time = most(n_units / (SHARES * n_threads), 1);
    int fill_y = WIDE % n_channels == 0, fill_result = fill_y;
    for (i64 one = 1; one < letters.n_right && (fill_y || fill_result); one++) {
        fill_y &= letters.right_y[one] == letters.right_y[0] + one;
        fill_result &= letters.right_result[one] == letters.right_result[0] + one;
    }
    Work work = {.letters = letters, .x = call->x, .y = call->y, .result = call->result, .factor = (REAL)call->factor,
                 .n_channels = n_channels, .n_vectors = n_vectors, .n_parts = n_parts, .n_units = n_units,
                 .at_a_time = at_a_time, .fill_y = fill_y, .fill_result = fill_result};
    i64 packed_size = (PACKED_ROWS + PACKED_COLUMNS) * PACKED_SUMMED * WIDE;
    REAL *memory = acquire_block(n_threads * packed_size * sizeof(REAL));
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        Task task, next;
        PRODUCT(take_units)(&work, &task);
        for (; task.unit >= 0; task = next) {
            next = task;
            PRODUCT(advance)(&work, &next);
            PRODUCT(run_task)(&work.letters, &task, &next, memory + team.number * packed_size);
        }
    })
    release_block(memory);
    return 0;
}

#undef PRODUCT
#undef TILE_ROWS
#undef TILE_COLUMNS
#undef PACKED_SUMMED
#undef PACKED_ROWS
#undef PACKED_COLUMNS
#undef SHARES
#undef Letters
#undef Piece
#undef Work
#undef Task
#undef Prefetch
#undef LIES_ACROSS
