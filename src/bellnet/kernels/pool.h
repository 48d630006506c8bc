/* Pooling of orbits: the largest, the sum or the mean of rows with exactly the same equalities between their indices.
 *
 * A tensor is walked line by line, along its last axis. On a line all rows are of one orbit but for a few, those whose
 * last index is one of the others; so what rows have in common is looked up once for a line, and between those few
 * there are runs of rows. Where channels do not fill vectors, some rows beside each other are taken for one wide row,
 * and its parts are put together at the end.
 */
#ifndef BELLNET_POOL_H
#define BELLNET_POOL_H

/* Neighbouring rows of one orbit. */
typedef struct {
    i64 orbit, first, n_rows;
} Run;

#define MOST_RUNS (2 * MOST_AXES)
#define SUMMED_ROWS 64 /* single precision adds so many, and hands them on to double precision */

/* How many nodes there are on every axis. */
static void find_extents(const Orbits *orbits, const i64 *counts, i64 n_graphs, i64 graph, i64 *extents) {
    for (i64 axis = 0; axis < orbits->n_axes; axis++) {
        extents[axis] = orbits->length[axis];
        if (counts) extents[axis] = most(least(extents[axis], counts[orbits->set[axis] * n_graphs + graph]), 0);
    }
}

/* The rows of a line from `first` to `last`, run by run; `index` is where the line is on all axes but the last one. */
static int find_runs(const Orbits *orbits, const i64 *index, i64 first, i64 last, Run *runs) {
    const Prefix *prefix = orbits->prefixes;
    for (i64 axis = 0; axis < orbits->n_axes - 1; axis++) {
        i64 block = 0;
        for (; block < prefix->n_blocks; block++)
            if (prefix->child[block] >= 0 && index[prefix->axis[block]] == index[axis]) break;
        prefix = orbits->prefixes + prefix->child[block];
    }
    i64 n_others = 0, n_runs = 0, others[MOST_AXES], places[MOST_AXES];
    for (i64 block = 0; block < prefix->n_blocks; block++) {
        if (prefix->child[block] < 0) continue;
        i64 place = index[prefix->axis[block]], at = n_others++;
        for (; at && places[at - 1] > place; at--) places[at] = places[at - 1], others[at] = others[at - 1];
        places[at] = place, others[at] = prefix->child[block];
    }
    for (i64 one = 0; one < n_others; one++) {
        if (places[one] > first) runs[n_runs++] = (Run){prefix->child[prefix->n_blocks], first, places[one] - first};
        runs[n_runs++] = (Run){others[one], places[one], 1};
        first = places[one] + 1;
    }
    if (last > first) runs[n_runs++] = (Run){prefix->child[prefix->n_blocks], first, last - first};
    return n_runs;
}

/* From one line to the next, on the first axis from `first` on; whether there is one. */
static int next_line(i64 n_axes, i64 *index, i64 first, const i64 *ends) {
    for (i64 axis = n_axes - 2; axis >= 0; axis--) {
        if (++index[axis] < ends[axis]) return 1;
        index[axis] = axis ? 0 : first;
    }
    return 0;
}

/* The number of the first row of a line. */
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

#define NAMED(name) JOINED(name, TYPE)
#define Numbers NAMED(Numbers)
#define Bits NAMED(Bits)
#define Pool NAMED(Pool)
#define Found NAMED(Found)

#if defined(__AVX512F__)
#define POOL_BYTES 64
#elif defined(__AVX__)
#define POOL_BYTES 32
#else
#define POOL_BYTES 16
#endif
#define LANES ((i64)(POOL_BYTES / sizeof(REAL)))
#define SIDE_BY_SIDE 4 /* vectors of a row that are taken at a time */

typedef REAL Numbers __attribute__((vector_size(POOL_BYTES), aligned(sizeof(REAL)), may_alias));
typedef __typeof__(_Generic((REAL)0, float: (int32_t)0, double: (int64_t)0)) Bits
    __attribute__((vector_size(POOL_BYTES), aligned(sizeof(REAL)), may_alias));

/* All that a call is given. */
typedef struct {
    const Orbits *orbits;
    i64 n_graphs, channels, reduce;
    const i64 *counts; /* (n_sets, n_graphs), or NULL */
    const REAL *rows;
    REAL *pooled;   /* (n_graphs, n_orbits, channels) */
    REAL *divisors; /* the same for the largest: how many rows have it; else (n_graphs, n_orbits) numbers of rows */
    const REAL *gradient;
    REAL *of_rows;
    i64 repeats, width; /* so many rows make a wide one */
} Pool;

/* What was found so far, a wide row for every orbit. */
typedef struct {
    REAL *largest, *ties;
    REAL *sums; /* of so many wide rows, which are to be added to the totals */
    double *totals;
    i64 *n_summed, *n_rows; /* of every orbit */
} Found;

#define FOUND_NUMBERS 2 /* of double precision */

static Found NAMED(found_in)(double *memory, i64 size, i64 n_orbits) {
    i64 *numbers = (i64 *)(memory + FOUND_NUMBERS * size);
    REAL *others = (REAL *)(memory + size);
    return (Found){(REAL *)memory, others, others, memory, numbers, numbers + n_orbits};
}

/* ---- forwards */

INLINE void NAMED(keep_largest)(int n_vectors, REAL *largest, REAL *ties, const REAL *from, i64 step, i64 n_steps) {
    Numbers before[SIDE_BY_SIDE], best[SIDE_BY_SIDE];
    Bits equal[SIDE_BY_SIDE];
#pragma GCC unroll 4
    for (int one = 0; one < n_vectors; one++) {
        before[one] = best[one] = *(const Numbers *)(largest + one * LANES);
        equal[one] = (Bits){0};
    }
    for (i64 row = 0; row < n_steps; row++) {
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++) {
            Numbers given = *(const Numbers *)(from + row * step + one * LANES);
            /* What is no number is taken, and never given up again: nothing is larger. */
            Bits is_better = (given > best[one]) | (given != given), is_as_good = given >= best[one];
            equal[one] = (equal[one] & ~is_better) - is_as_good;
            best[one] = (Numbers)((is_better & (Bits)given) | (~is_better & (Bits)best[one]));
        }
    }
#pragma GCC unroll 4
    for (int one = 0; one < n_vectors; one++) {
        Numbers *others = (Numbers *)(ties + one * LANES);
        Bits stays = before[one] == best[one];
        *others = (Numbers)(stays & (Bits)*others) + __builtin_convertvector(equal[one], Numbers);
        *(Numbers *)(largest + one * LANES) = best[one];
    }
}

INLINE void NAMED(keep_larger)(REAL *largest, REAL *ties, REAL other, REAL n_others) {
    if (other > *largest || other != other)
        *largest = other, *ties = n_others;
    else if (other == *largest)
        *ties += n_others;
}

INLINE void NAMED(add_to_sums)(int n_vectors, REAL *into, const REAL *from, i64 step, i64 n_steps) {
    Numbers sums[SIDE_BY_SIDE];
#pragma GCC unroll 4
    for (int one = 0; one < n_vectors; one++) sums[one] = *(const Numbers *)(into + one * LANES);
    for (i64 row = 0; row < n_steps; row++) {
#pragma GCC unroll 4
        for (int one = 0; one < n_vectors; one++) sums[one] += *(const Numbers *)(from + row * step + one * LANES);
    }
#pragma GCC unroll 4
    for (int one = 0; one < n_vectors; one++) *(Numbers *)(into + one * LANES) = sums[one];
}

/* What was added up in the precision of the numbers is handed on. */
static void NAMED(settle)(const Pool *pool, Found found, i64 orbit) {
    REAL *sums = found.sums + orbit * pool->width;
    double *totals = found.totals + orbit * pool->width;
    for (i64 column = 0; column < pool->width; column++) totals[column] += sums[column], sums[column] = 0;
    found.n_summed[orbit] = 0;
}

/* So many wide rows of an orbit, or a part of one. */
static void NAMED(take_rows)(const Pool *pool, Found found, i64 orbit, const REAL *from, i64 n_steps, i64 width) {
    i64 step = pool->width, column = 0;
    if (pool->reduce == LARGEST) {
        REAL *largest = found.largest + orbit * step, *ties = found.ties + orbit * step;
        for (; column + SIDE_BY_SIDE * LANES <= width; column += SIDE_BY_SIDE * LANES)
            NAMED(keep_largest)(SIDE_BY_SIDE, largest + column, ties + column, from + column, step, n_steps);
        for (; column + LANES <= width; column += LANES)
            NAMED(keep_largest)(1, largest + column, ties + column, from + column, step, n_steps);
        for (; column < width; column++)
            for (i64 row = 0; row < n_steps; row++)
                NAMED(keep_larger)(largest + column, ties + column, from[row * step + column], 1);
        return;
    }
    for (i64 first = 0; first < n_steps; first += SUMMED_ROWS, from += SUMMED_ROWS * step) {
        i64 n_rows = least(n_steps - first, SUMMED_ROWS);
        if (found.n_summed[orbit] + n_rows > SUMMED_ROWS) NAMED(settle)(pool, found, orbit);
        found.n_summed[orbit] += n_rows;
        REAL *sums = found.sums + orbit * step;
        for (column = 0; column + SIDE_BY_SIDE * LANES <= width; column += SIDE_BY_SIDE * LANES)
            NAMED(add_to_sums)(SIDE_BY_SIDE, sums + column, from + column, step, n_rows);
        for (; column + LANES <= width; column += LANES)
            NAMED(add_to_sums)(1, sums + column, from + column, step, n_rows);
        for (; column < width; column++)
            for (i64 row = 0; row < n_rows; row++) sums[column] += from[row * step + column];
    }
}

/* Everything from `first` to `last` on the first axis of a graph. */
static void NAMED(take_lines)(const Pool *pool, Found found, i64 graph, i64 first, i64 last, const i64 *extents) {
    const Orbits *orbits = pool->orbits;
    i64 n_axes = orbits->n_axes, n_found = orbits->n_orbits * pool->width, index[MOST_AXES] = {first}, ends[MOST_AXES];
    const REAL *rows = pool->rows + graph * rows_of_graph(orbits) * pool->channels;
    for (i64 one = 0; one < n_found; one++) {
        if (pool->reduce == LARGEST)
            found.largest[one] = -__builtin_inf(), found.ties[one] = 0;
        else
            found.totals[one] = found.sums[one] = 0;
    }
    for (i64 orbit = 0; orbit < orbits->n_orbits; orbit++) found.n_summed[orbit] = found.n_rows[orbit] = 0;
    for (i64 axis = 0; axis < n_axes; axis++) {
        if (!extents[axis]) return;
        ends[axis] = extents[axis];
    }
    if (first >= last) return;
    ends[0] = last;
    Run runs[MOST_RUNS];
    do {
        const REAL *line = rows + start_of_line(orbits, index) * pool->channels;
        int n_runs = find_runs(orbits, index, n_axes == 1 ? first : 0, ends[n_axes - 1], runs);
        for (int one = 0; one < n_runs; one++) {
            const REAL *from = line + runs[one].first * pool->channels;
            i64 n_wide = runs[one].n_rows / pool->repeats, n_left = runs[one].n_rows % pool->repeats;
            found.n_rows[runs[one].orbit] += runs[one].n_rows;
            if (n_wide) NAMED(take_rows)(pool, found, runs[one].orbit, from, n_wide, pool->width);
            if (n_left)
                NAMED(take_rows)(pool, found, runs[one].orbit, from + n_wide * pool->width, 1, n_left * pool->channels);
        }
    } while (next_line(n_axes, index, first, ends));
}

/* Add a row that was found to another one. */
static void NAMED(join)(const Pool *pool, Found found, i64 to, Found other, i64 from) {
    for (i64 channel = 0; channel < pool->channels; channel++) {
        if (pool->reduce == LARGEST)
            NAMED(keep_larger)(found.largest + to + channel, found.ties + to + channel, other.largest[from + channel],
                               other.ties[from + channel]);
        else
            found.totals[to + channel] += other.totals[from + channel];
    }
}

/* Everything is handed on, and the parts of wide rows make one. */
static void NAMED(narrow)(const Pool *pool, Found found) {
    for (i64 orbit = 0; orbit < pool->orbits->n_orbits; orbit++) {
        if (found.n_summed[orbit]) NAMED(settle)(pool, found, orbit);
        for (i64 repeat = 1; repeat < least(pool->repeats, found.n_rows[orbit]); repeat++)
            NAMED(join)(pool, found, orbit * pool->width, found, orbit * pool->width + repeat * pool->channels);
    }
}

static void NAMED(hand_out)(const Pool *pool, Found found, i64 graph) {
    for (i64 orbit = 0; orbit < pool->orbits->n_orbits; orbit++) {
        i64 row = graph * pool->orbits->n_orbits + orbit, n_rows = found.n_rows[orbit];
        REAL *pooled = pool->pooled + row * pool->channels;
        if (pool->reduce == LARGEST) {
            const REAL *largest = found.largest + orbit * pool->width, *ties = found.ties + orbit * pool->width;
            REAL *divisors = pool->divisors + row * pool->channels;
            for (i64 channel = 0; channel < pool->channels; channel++) {
                pooled[channel] = n_rows ? largest[channel] : 0;
                divisors[channel] = largest[channel] == largest[channel] ? ties[channel] : 0;
            }
            continue;
        }
        double divisor = pool->reduce == MEAN ? most(n_rows, 1) : 1;
        pool->divisors[row] = divisor;
        for (i64 channel = 0; channel < pool->channels; channel++)
            pooled[channel] = found.totals[orbit * pool->width + channel] / divisor;
    }
}

/* ---- backwards */

/* What every row of an orbit is given, for wide rows: their share if they have the largest number, else nothing. */
static void NAMED(find_shares)(const Pool *pool, i64 graph, REAL *shares, REAL *nothings, REAL *largest) {
    i64 n_orbits = pool->orbits->n_orbits;
    for (i64 orbit = 0; orbit < n_orbits; orbit++) {
        i64 row = graph * n_orbits + orbit, at = orbit * pool->width;
        const REAL *gradient = pool->gradient + row * pool->channels;
        for (i64 channel = 0; channel < pool->channels; channel++) {
            i64 place = at + channel;
            if (pool->reduce == LARGEST) {
                shares[place] = gradient[channel] / pool->divisors[row * pool->channels + channel];
                nothings[place] = 0 * shares[place]; /* which is no number where the share is none, or infinite */
                largest[place] = pool->pooled[row * pool->channels + channel];
            } else {
                shares[place] = gradient[channel] / pool->divisors[row];
            }
        }
        for (i64 place = at + pool->channels; place < at + pool->width; place++) {
            shares[place] = shares[place - pool->channels];
            if (pool->reduce != LARGEST) continue;
            nothings[place] = nothings[place - pool->channels];
            largest[place] = largest[place - pool->channels];
        }
    }
}

INLINE void NAMED(give_largest)(REAL *restrict to, const REAL *restrict from, const REAL *restrict share,
                                const REAL *restrict nothing, const REAL *restrict largest, i64 width) {
    for (i64 column = 0; column < width; column++)
        to[column] = from[column] == largest[column] ? share[column] : nothing[column];
}

INLINE void NAMED(give)(REAL *restrict to, const REAL *restrict share, i64 width) {
    for (i64 column = 0; column < width; column++) to[column] = share[column];
}

/* The gradient of everything from `first` to `last` on the first axis of a graph, zero where there is no node. */
static void NAMED(give_lines)(const Pool *pool, i64 graph, i64 first, i64 last, const REAL *shares,
                              const REAL *nothings, const REAL *largest) {
    const Orbits *orbits = pool->orbits;
    i64 n_axes = orbits->n_axes, inner = n_axes - 1, n_numbers = rows_of_graph(orbits) * pool->channels;
    i64 index[MOST_AXES] = {first}, ends[MOST_AXES], extents[MOST_AXES];
    if (first >= last || !n_numbers) return;
    find_extents(orbits, pool->counts, pool->n_graphs, graph, extents);
    for (i64 axis = 0; axis < n_axes; axis++) ends[axis] = orbits->length[axis];
    ends[0] = last;
    Run runs[MOST_RUNS];
    do {
        i64 begins = inner ? 0 : first, stops = least(ends[inner], extents[inner]);
        for (i64 axis = 0; axis < inner; axis++)
            if (index[axis] >= extents[axis]) stops = begins;
        stops = most(stops, begins);
        i64 line = graph * n_numbers + start_of_line(orbits, index) * pool->channels;
        int n_runs = stops > begins ? find_runs(orbits, index, begins, stops, runs) : 0;
        for (int one = 0; one < n_runs; one++) {
            i64 at = line + runs[one].first * pool->channels, orbit = runs[one].orbit * pool->width;
            i64 left = runs[one].n_rows * pool->channels;
            for (; left > 0; left -= pool->width, at += pool->width) {
                i64 width = least(left, pool->width);
                if (pool->reduce == LARGEST)
                    NAMED(give_largest)(pool->of_rows + at, pool->rows + at, shares + orbit, nothings + orbit,
                                        largest + orbit, width);
                else
                    NAMED(give)(pool->of_rows + at, shares + orbit, width);
            }
        }
        memset(pool->of_rows + line + stops * pool->channels, 0, (ends[inner] - stops) * pool->channels * sizeof(REAL));
    } while (next_line(n_axes, index, first, ends));
}

/* ---- what is called from outside; the result is zero, or one if there was no memory */

static Pool NAMED(pool_of)(const PoolCall *call) {
    return (Pool){.orbits = call->orbits, .n_graphs = call->n_graphs, .channels = call->channels,
                  .reduce = call->reduce, .counts = call->counts, .rows = call->rows, .pooled = call->pooled,
                  .divisors = call->divisors, .gradient = call->gradient, .of_rows = call->of_rows, .repeats = 1};
}

EXPORTED i64 NAMED(bellnet_pool)(const PoolCall *call) {
    const Orbits *orbits = call->orbits;
    const i64 *counts = call->counts;
    i64 n_graphs = call->n_graphs, n_threads = call->n_threads, channels = call->channels;
    Pool pool = NAMED(pool_of)(call);
    if (channels < 8 * LANES) {
        while (pool.repeats * channels % LANES) pool.repeats *= 2;
        pool.repeats = most(least(pool.repeats, orbits->length[orbits->n_axes - 1]), 1);
    }
    pool.width = pool.repeats * channels;
    i64 n_found = rounded(orbits->n_orbits * pool.width), n_orbits = rounded(orbits->n_orbits);
    i64 each = FOUND_NUMBERS * n_found + 2 * n_orbits;
    double *memory = take_block(n_threads * each * sizeof(double));
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        i64 n_alone = n_graphs / team.size * team.size, first, last = share(team, n_alone, &first), extents[MOST_AXES];
        Found found = NAMED(found_in)(memory + team.number * each, n_found, n_orbits);
        for (i64 graph = first; graph < last; graph++) {
            find_extents(orbits, counts, n_graphs, graph, extents);
            NAMED(take_lines)(&pool, found, graph, 0, extents[0], extents);
            NAMED(narrow)(&pool, found);
            NAMED(hand_out)(&pool, found, graph);
        }
        for (i64 graph = n_alone; graph < n_graphs; graph++) {
            find_extents(orbits, counts, n_graphs, graph, extents);
            last = share(team, extents[0], &first);
            NAMED(take_lines)(&pool, found, graph, first, last, extents);
            NAMED(narrow)(&pool, found);
            wait_for(team);
            if (team.number == 0) {
                for (int member = 1; member < team.size; member++) {
                    Found other = NAMED(found_in)(memory + member * each, n_found, n_orbits);
                    for (i64 orbit = 0; orbit < orbits->n_orbits; orbit++) {
                        NAMED(join)(&pool, found, orbit * pool.width, other, orbit * pool.width);
                        found.n_rows[orbit] += other.n_rows[orbit];
                    }
                }
                NAMED(hand_out)(&pool, found, graph);
            }
            wait_for(team);
        }
    })
    give_block(memory);
    return 0;
}

EXPORTED i64 NAMED(bellnet_unpool)(const PoolCall *call) {
    const Orbits *orbits = call->orbits;
    i64 n_graphs = call->n_graphs, n_threads = call->n_threads, channels = call->channels;
    Pool pool = NAMED(pool_of)(call);
    i64 n_wide = 4 * LANES / most(channels, 1);
    pool.repeats = most(least(n_wide, orbits->length[orbits->n_axes - 1]), 1);
    pool.width = pool.repeats * channels;
    i64 size = rounded(orbits->n_orbits * pool.width), each = pool.reduce == LARGEST ? 3 * size : size;
    REAL *memory = take_block(n_threads * each * sizeof(REAL));
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        i64 n_alone = n_graphs / team.size * team.size, first, last = share(team, n_alone, &first);
        REAL *shares = memory + team.number * each, *nothings = shares + size, *largest = nothings + size;
        for (i64 graph = first; graph < last; graph++) {
            NAMED(find_shares)(&pool, graph, shares, nothings, largest);
            NAMED(give_lines)(&pool, graph, 0, orbits->length[0], shares, nothings, largest);
        }
        for (i64 graph = n_alone; graph < n_graphs; graph++) {
            i64 from, to = share(team, orbits->length[0], &from);
            NAMED(find_shares)(&pool, graph, shares, nothings, largest);
            NAMED(give_lines)(&pool, graph, from, to, shares, nothings, largest);
        }
    })
    give_block(memory);
    return 0;
}

#undef NAMED
#undef Numbers
#undef Bits
#undef Pool
#undef Found
#undef POOL_BYTES
#undef LANES
#undef SIDE_BY_SIDE
#undef FOUND_NUMBERS
