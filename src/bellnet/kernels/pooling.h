/* Pooling of orbits: the maximum, the sum or the mean of rows with the same equalities between their indices.
 *
 * A tensor is traversed line by line, along its last axis. All rows of a line are of one orbit, but for those whose last
 * index is one of the others; between these few rows there are spans of rows. Where channels do not fill vectors, several
 * neighbouring rows are taken as one wide row, whose parts are combined at the end.
 */
#ifndef BELLNET_POOLING_H
#define BELLNET_POOLING_H

/* Neighbouring rows of one orbit. */
typedef struct {
    i64 orbit, first, n_rows;
} Span;

#define MOST_SPANS (2 * MOST_AXES)
#define SUMMED_ROWS 64 /* summed in the dtype of the rows, before they are added to sums in double precision */

/* The number of nodes on every axis. */
static void find_extents(const PoolCall *call, i64 graph, i64 *extents) {
    const Orbits *orbits = call->orbits;
    for (i64 axis = 0; axis < orbits->n_axes; axis++) {
        i64 count = call->counts ? call->counts[orbits->set[axis] * call->n_graphs + graph] : orbits->length[axis];
        extents[axis] = most(least(orbits->length[axis], count), 0);
    }
}

/* The spans of a line from `first` to `last`; `index` is that of the line on all axes but the last one. */
static int find_spans(const Orbits *orbits, const i64 *index, i64 first, i64 last, Span *spans) {
    const Prefix *prefix = orbits->prefixes;
    for (i64 axis = 0; axis < orbits->n_axes - 1; axis++) {
        i64 block = 0;
        for (; block < prefix->n_blocks; block++)
            if (prefix->child[block] >= 0 && index[prefix->axis[block]] == index[axis]) break;
        prefix = orbits->prefixes + prefix->child[block];
    }
    i64 n_others = 0, n_spans = 0, others[MOST_AXES], positions[MOST_AXES];
    for (i64 block = 0; block < prefix->n_blocks; block++) {
        if (prefix->child[block] < 0) continue;
        i64 position = index[prefix->axis[block]], at = n_others++;
        for (; at && positions[at - 1] > position; at--) positions[at] = positions[at - 1], others[at] = others[at - 1];
        positions[at] = position, others[at] = prefix->child[block];
    }
    for (i64 one = 0; one < n_others; one++) {
        if (positions[one] > first) spans[n_spans++] = (Span){prefix->child[prefix->n_blocks], first, positions[one] - first};
        spans[n_spans++] = (Span){others[one], positions[one], 1};
        first = positions[one] + 1;
    }
    if (last > first) spans[n_spans++] = (Span){prefix->child[prefix->n_blocks], first, last - first};
    return n_spans;
}

/* Advance to the next line, on the first axis from `first` on; return whether there is one. */
static int next_line(i64 n_axes, i64 *index, i64 first, const i64 *ends) {
    for (i64 axis = n_axes - 2; axis >= 0; axis--) {
        if (++index[axis] < ends[axis]) return 1;
        index[axis] = axis ? 0 : first;
    }
    return 0;
}

/* The first row of a line. */
static i64 start_of_line(const Orbits *orbits, const i64 *index) {
    i64 row = 0;
    for (i64 axis = 0; axis < orbits->n_axes; axis++)
        row = row * orbits->length[axis] + (axis < orbits->n_axes - 1 ? index[axis] : 0);
    return row;
}

static i64 rows_of_graph(const Orbits *orbits) {
    i64 n_rows = 1;
    for (i64 axis = 0; axis < orbits->n_axes; axis++) n_rows *= orbits->length[axis];
    return n_rows;
}

#endif

#define Bits NAMED(Bits)
#define Pool NAMED(Pool)
#define Partial NAMED(Partial)
#define SIDE_BY_SIDE 4 /* vectors of a row that are taken at a time */

typedef __typeof__(_Generic((REAL)0, float: (int32_t)0, double: (int64_t)0)) Bits
    __attribute__((vector_size(MOST_BYTES), aligned(sizeof(REAL)), may_alias));

/* The arguments of a call, and how many rows make a wide one. */
typedef struct {
    const PoolCall *call;
    const Orbits *orbits;
    i64 n_channels, n_repeats, width;
    int is_max;
} Pool;

/* Partial results, a wide row for every orbit. */
typedef struct {
    REAL *largest, *ties;
    REAL *sums; /* of some wide rows, not yet added to the totals */
    double *totals;
    i64 *n_summed, *n_rows; /* of every orbit */
} Partial;

#define PARTIAL_DOUBLES 2

static Partial NAMED(partial_in)(double *memory, i64 size, i64 n_orbits) {
    i64 *integers = (i64 *)(memory + PARTIAL_DOUBLES * size);
    REAL *others = (REAL *)(memory + size);
    return (Partial){(REAL *)memory, others, others, memory, integers, integers + n_orbits};
}

/* ---- forward pass */

INLINE void NAMED(update_max)(int n_vectors, REAL *largest, REAL *ties, const REAL *from, i64 stride, i64 n_rows) {
    Wide before[SIDE_BY_SIDE], best[SIDE_BY_SIDE];
    Bits n_equal[SIDE_BY_SIDE];
#pragma GCC unroll 4
    for (int one = 0; one < n_vectors; one++) {
        before[one] = best[one] = *(const Wide *)(largest + one * WIDE);
        n_equal[one] = (Bits){0};
    }
    for (i64 row = 0; row < n_rows; row++) {
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++) {
            Wide value = *(const Wide *)(from + row * stride + one * WIDE);
            /* NaN is taken, and then stays: nothing compares larger. */
            Bits is_better = (value > best[one]) | (value != value), is_as_good = value >= best[one];
            n_equal[one] = (n_equal[one] & ~is_better) - is_as_good;
            best[one] = (Wide)((is_better & (Bits)value) | (~is_better & (Bits)best[one]));
        }
    }
#pragma GCC unroll 4
    for (int one = 0; one < n_vectors; one++) {
        Wide *others = (Wide *)(ties + one * WIDE);
        Bits stays = before[one] == best[one];
        *others = (Wide)(stays & (Bits)*others) + __builtin_convertvector(n_equal[one], Wide);
        *(Wide *)(largest + one * WIDE) = best[one];
    }
}

INLINE void NAMED(update_single_max)(REAL *largest, REAL *ties, REAL other, REAL n_others) {
    if (other > *largest || other != other)
        *largest = other, *ties = n_others;
    else if (other == *largest)
        *ties += n_others;
}

INLINE void NAMED(add_to_sums)(int n_vectors, REAL *into, const REAL *from, i64 stride, i64 n_rows) {
    Wide sums[SIDE_BY_SIDE];
#pragma GCC unroll 4
    for (int one = 0; one < n_vectors; one++) sums[one] = *(const Wide *)(into + one * WIDE);
    for (i64 row = 0; row < n_rows; row++) {
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++) sums[one] += *(const Wide *)(from + row * stride + one * WIDE);
    }
#pragma GCC unroll 4
    for (int one = 0; one < n_vectors; one++) *(Wide *)(into + one * WIDE) = sums[one];
}

/* Add the sums of an orbit to its totals. */
static void NAMED(flush_sums)(const Pool *pool, Partial partial, i64 orbit) {
    REAL *sums = partial.sums + orbit * pool->width;
    double *totals = partial.totals + orbit * pool->width;
    for (i64 column = 0; column < pool->width; column++) totals[column] += sums[column], sums[column] = 0;
    partial.n_summed[orbit] = 0;
}

/* Pool wide rows of an orbit, or a part of one. */
static void NAMED(pool_rows)(const Pool *pool, Partial partial, i64 orbit, const REAL *from, i64 n_rows, i64 width) {
    i64 stride = pool->width, column = 0;
    if (pool->is_max) {
        REAL *largest = partial.largest + orbit * stride, *ties = partial.ties + orbit * stride;
        for (; column + SIDE_BY_SIDE * WIDE <= width; column += SIDE_BY_SIDE * WIDE)
            NAMED(update_max)(SIDE_BY_SIDE, largest + column, ties + column, from + column, stride, n_rows);
        for (; column + WIDE <= width; column += WIDE)
            NAMED(update_max)(1, largest + column, ties + column, from + column, stride, n_rows);
        for (; column < width; column++)
            for (i64 row = 0; row < n_rows; row++)
                NAMED(update_single_max)(largest + column, ties + column, from[row * stride + column], 1);
        return;
    }
    for (i64 first = 0; first < n_rows; first += SUMMED_ROWS, from += SUMMED_ROWS * stride) {
        i64 n_here = least(n_rows - first, SUMMED_ROWS);
        if (partial.n_summed[orbit] + n_here > SUMMED_ROWS) NAMED(flush_sums)(pool, partial, orbit);
        partial.n_summed[orbit] += n_here;
        REAL *sums = partial.sums + orbit * stride;
        for (column = 0; column + SIDE_BY_SIDE * WIDE <= width; column += SIDE_BY_SIDE * WIDE)
            NAMED(add_to_sums)(SIDE_BY_SIDE, sums + column, from + column, stride, n_here);
        for (; column + WIDE <= width; column += WIDE)
            NAMED(add_to_sums)(1, sums + column, from + column, stride, n_here);
        for (; column < width; column++)
            for (i64 row = 0; row < n_here; row++) sums[column] += from[row * stride + column];
    }
}

/* Combine a partial row with another one. */
static void NAMED(combine)(const Pool *pool, Partial partial, i64 to, Partial other, i64 from) {
    for (i64 channel = 0; channel < pool->n_channels; channel++) {
        if (pool->is_max)
            NAMED(update_single_max)(partial.largest + to + channel, partial.ties + to + channel,
                                     other.largest[from + channel], other.ties[from + channel]);
        else
            partial.totals[to + channel] += other.totals[from + channel];
    }
}

/* Pool the rows of a graph from `first` to `last` on its first axis, and combine the parts of wide rows. */
static void NAMED(pool_lines)(const Pool *pool, Partial partial, i64 graph, i64 first, i64 last, const i64 *extents) {
    const Orbits *orbits = pool->orbits;
    i64 n_axes = orbits->n_axes, index[MOST_AXES] = {first}, ends[MOST_AXES], is_empty = first >= last;
    const REAL *rows = (const REAL *)pool->call->rows + graph * rows_of_graph(orbits) * pool->n_channels;
    for (i64 one = 0; one < orbits->n_orbits * pool->width; one++) {
        if (pool->is_max)
            partial.largest[one] = -__builtin_inf(), partial.ties[one] = 0;
        else
            partial.totals[one] = partial.sums[one] = 0;
    }
    for (i64 orbit = 0; orbit < orbits->n_orbits; orbit++) partial.n_summed[orbit] = partial.n_rows[orbit] = 0;
    for (i64 axis = 0; axis < n_axes; axis++) is_empty |= !(ends[axis] = extents[axis]);
    if (is_empty) return;
    ends[0] = last;
    Span spans[MOST_SPANS];
    do {
        const REAL *line = rows + start_of_line(orbits, index) * pool->n_channels;
        int n_spans = find_spans(orbits, index, n_axes == 1 ? first : 0, ends[n_axes - 1], spans);
        for (const Span *span = spans; span < spans + n_spans; span++) {
            const REAL *from = line + span->first * pool->n_channels;
            i64 n_wide = span->n_rows / pool->n_repeats, n_left = span->n_rows % pool->n_repeats;
            partial.n_rows[span->orbit] += span->n_rows;
            if (n_wide) NAMED(pool_rows)(pool, partial, span->orbit, from, n_wide, pool->width);
            if (n_left)
                NAMED(pool_rows)(pool, partial, span->orbit, from + n_wide * pool->width, 1, n_left * pool->n_channels);
        }
    } while (next_line(n_axes, index, first, ends));
    for (i64 orbit = 0; orbit < orbits->n_orbits; orbit++) {
        if (partial.n_summed[orbit]) NAMED(flush_sums)(pool, partial, orbit);
        for (i64 repeat = 1; repeat < least(pool->n_repeats, partial.n_rows[orbit]); repeat++)
            NAMED(combine)(pool, partial, orbit * pool->width, partial, orbit * pool->width + repeat * pool->n_channels);
    }
}

static void NAMED(write_pooled)(const Pool *pool, Partial partial, i64 graph) {
    for (i64 orbit = 0; orbit < pool->orbits->n_orbits; orbit++) {
        i64 row = graph * pool->orbits->n_orbits + orbit, n_rows = partial.n_rows[orbit], at = orbit * pool->width;
        REAL *pooled = (REAL *)pool->call->pooled + row * pool->n_channels, *divisors = pool->call->divisors;
        double divisor = pool->call->reduce == POOL_MEAN ? most(n_rows, 1) : 1;
        if (!pool->is_max) divisors[row] = divisor;
        for (i64 channel = 0; channel < pool->n_channels; channel++) {
            if (pool->is_max) {
                REAL largest = partial.largest[at + channel];
                pooled[channel] = n_rows ? largest : 0;
                divisors[row * pool->n_channels + channel] = largest == largest ? partial.ties[at + channel] : 0;
            } else {
                pooled[channel] = partial.totals[at + channel] / divisor;
            }
        }
    }
}

/* ---- backward pass */

/* The gradient of every row of an orbit, as wide rows: a share for equal maxima, and zero or NaN for other rows. */
static void NAMED(find_shares)(const Pool *pool, i64 graph, REAL *shares, REAL *zeros, REAL *largest) {
    const PoolCall *call = pool->call;
    i64 n_orbits = pool->orbits->n_orbits, n_channels = pool->n_channels;
    for (i64 orbit = 0; orbit < n_orbits; orbit++) {
        i64 row = graph * n_orbits + orbit, start = orbit * pool->width;
        const REAL *gradient = (const REAL *)call->gradient + row * n_channels, *divisors = call->divisors;
        const REAL *pooled = pool->is_max ? (const REAL *)call->pooled + row * n_channels : NULL;
        for (i64 channel = 0; channel < n_channels; channel++) {
            REAL share = gradient[channel] / divisors[pool->is_max ? row * n_channels + channel : row];
            shares[start + channel] = share;
            if (!pool->is_max) continue;
            zeros[start + channel] = 0 * share; /* NaN where the share is infinite or NaN */
            largest[start + channel] = pooled[channel];
        }
        for (i64 at = start + n_channels; at < start + pool->width; at++) {
            shares[at] = shares[at - n_channels];
            if (!pool->is_max) continue;
            zeros[at] = zeros[at - n_channels];
            largest[at] = largest[at - n_channels];
        }
    }
}

INLINE void NAMED(write_max_gradient)(REAL *restrict to, const REAL *restrict from, const REAL *restrict share,
                                      const REAL *restrict zero, const REAL *restrict largest, i64 width) {
    for (i64 column = 0; column < width; column++)
        to[column] = from[column] == largest[column] ? share[column] : zero[column];
}

/* The gradient of the rows of a graph from `first` to `last` on its first axis, zero where there is no node. */
static void NAMED(write_gradient)(const Pool *pool, i64 graph, i64 first, i64 last, const REAL *shares,
                                  const REAL *zeros, const REAL *largest) {
    const Orbits *orbits = pool->orbits;
    const REAL *rows = pool->call->rows;
    REAL *grad_rows = pool->call->grad_rows;
    i64 n_axes = orbits->n_axes, inner = n_axes - 1, n_values = rows_of_graph(orbits) * pool->n_channels;
    i64 index[MOST_AXES] = {first}, ends[MOST_AXES], extents[MOST_AXES];
    if (first >= last || !n_values) return;
    find_extents(pool->call, graph, extents);
    for (i64 axis = 0; axis < n_axes; axis++) ends[axis] = orbits->length[axis];
    ends[0] = last;
    Span spans[MOST_SPANS];
    do {
        i64 start = inner ? 0 : first, stop = least(ends[inner], extents[inner]);
        for (i64 axis = 0; axis < inner; axis++)
            if (index[axis] >= extents[axis]) stop = start;
        stop = most(stop, start);
        i64 line = graph * n_values + start_of_line(orbits, index) * pool->n_channels;
        int n_spans = stop > start ? find_spans(orbits, index, start, stop, spans) : 0;
        for (const Span *span = spans; span < spans + n_spans; span++) {
            i64 at = line + span->first * pool->n_channels, orbit = span->orbit * pool->width;
            i64 left = span->n_rows * pool->n_channels;
            for (; left > 0; left -= pool->width, at += pool->width) {
                i64 width = least(left, pool->width);
                if (pool->is_max)
                    NAMED(write_max_gradient)(grad_rows + at, rows + at, shares + orbit, zeros + orbit, largest + orbit, width);
                else
                    NAMED(copy_row)(grad_rows + at, shares + orbit, width);
            }
        }
        memset(grad_rows + line + stop * pool->n_channels, 0, (ends[inner] - stop) * pool->n_channels * sizeof(REAL));
    } while (next_line(n_axes, index, first, ends));
}

/* ---- exported functions */

static Pool NAMED(pool_of)(const PoolCall *call, i64 n_repeats) {
    i64 repeats = most(least(n_repeats, call->orbits->length[call->orbits->n_axes - 1]), 1);
    return (Pool){call, call->orbits, call->n_channels, repeats, repeats * call->n_channels, call->reduce == POOL_MAX};
}

EXPORTED i64 NAMED(bellnet_pool)(const PoolCall *call) {
    const Orbits *orbits = call->orbits;
    i64 n_graphs = call->n_graphs, n_threads = call->n_threads, n_repeats = 1;
    while (call->n_channels < 8 * WIDE && n_repeats * call->n_channels % WIDE) n_repeats *= 2;
    Pool pool = NAMED(pool_of)(call, n_repeats);
    i64 size = rounded(orbits->n_orbits * pool.width), n_orbits = rounded(orbits->n_orbits);
    i64 each = PARTIAL_DOUBLES * size + 2 * n_orbits;
    double *memory = acquire_block(n_threads * each * sizeof(double));
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        i64 n_alone = n_graphs / team.size * team.size, first, last = share(team, n_alone, &first), extents[MOST_AXES];
        Partial partial = NAMED(partial_in)(memory + team.number * each, size, n_orbits);
        for (i64 graph = first; graph < last; graph++) {
            find_extents(call, graph, extents);
            NAMED(pool_lines)(&pool, partial, graph, 0, extents[0], extents);
            NAMED(write_pooled)(&pool, partial, graph);
        }
        for (i64 graph = n_alone; graph < n_graphs; graph++) {
            find_extents(call, graph, extents);
            last = share(team, extents[0], &first);
            NAMED(pool_lines)(&pool, partial, graph, first, last, extents);
            wait_for(team);
            if (team.number == 0) {
                for (int member = 1; member < team.size; member++) {
                    Partial other = NAMED(partial_in)(memory + member * each, size, n_orbits);
                    for (i64 orbit = 0; orbit < orbits->n_orbits; orbit++) {
                        NAMED(combine)(&pool, partial, orbit * pool.width, other, orbit * pool.width);
                        partial.n_rows[orbit] += other.n_rows[orbit];
                    }
                }
                NAMED(write_pooled)(&pool, partial, graph);
            }
            wait_for(team);
        }
    })
    release_block(memory);
    return 0;
}

EXPORTED i64 NAMED(bellnet_pool_backward)(const PoolCall *call) {
    const Orbits *orbits = call->orbits;
    i64 n_graphs = call->n_graphs, n_threads = call->n_threads;
    Pool pool = NAMED(pool_of)(call, 4 * WIDE / most(call->n_channels, 1));
    i64 size = rounded(orbits->n_orbits * pool.width), each = pool.is_max ? 3 * size : size;
    REAL *memory = acquire_block(n_threads * each * sizeof(REAL));
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        i64 n_alone = n_graphs / team.size * team.size, first, last = share(team, n_alone, &first);
        REAL *shares = memory + team.number * each, *zeros = shares + size, *largest = zeros + size;
        for (i64 graph = first; graph < last; graph++) {
            NAMED(find_shares)(&pool, graph, shares, zeros, largest);
            NAMED(write_gradient)(&pool, graph, 0, orbits->length[0], shares, zeros, largest);
        }
        for (i64 graph = n_alone; graph < n_graphs; graph++) {
            last = share(team, orbits->length[0], &first);
            NAMED(find_shares)(&pool, graph, shares, zeros, largest);
            NAMED(write_gradient)(&pool, graph, first, last, shares, zeros, largest);
        }
    })
    release_block(memory);
    return 0;
}

#undef Bits
#undef Pool
#undef Partial
#undef SIDE_BY_SIDE
#undef PARTIAL_DOUBLES
