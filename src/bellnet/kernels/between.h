/* What stands between two layers: every channel shifted and scaled, rectified, dropped or not, and added to what was.
 *
 * All of it goes over rows of channels, and each row is in hand once: forwards once for the moments and once for the
 * result, backwards once for sums and once for the gradient. Sums are taken over a few rows in the precision of the
 * numbers and handed on to double precision.
 */
#ifndef BELLNET_BETWEEN_H
#define BELLNET_BETWEEN_H
#define BETWEEN_ROWS 64 /* rows whose sums are taken in the precision of the numbers */
#endif

#define NAMED(name) JOINED(name, TYPE)
#define Between NAMED(Between)

/* All that a call is given; what a row is multiplied by, and added to, may be missing. */
typedef struct {
    i64 n_rows, channels;
    const i64 *graphs; /* of every row; NULL for the first one */
    const REAL *rows, *factor, *shift, *kept;
} Between;

INLINE const REAL *NAMED(kept_of)(const Between *given, i64 row) {
    if (!given->kept) return NULL;
    return given->kept + (given->graphs ? given->graphs[row] : 0) * given->channels;
}

/* ---- forwards */

INLINE void NAMED(rectify_row)(i64 channels, const REAL *restrict from, const REAL *restrict factor,
                               const REAL *restrict shift, const REAL *restrict kept, const REAL *restrict before,
                               REAL *restrict to) {
    for (i64 channel = 0; channel < channels; channel++) {
        REAL number = from[channel] * factor[channel] + shift[channel];
        number = number < 0 ? 0 : number; /* what is no number stays so */
        if (kept) number *= kept[channel];
        to[channel] = before ? number + before[channel] : number;
    }
}

/* Mean, and sum of squared distances from it, of some rows; then of these and those before them. */
static void NAMED(add_moments)(const REAL *rows, i64 n_rows, i64 channels, REAL *own, double *means, double *squares,
                               double n_before) {
    memset(own, 0, 3 * channels * sizeof(REAL));
    REAL *restrict about = own, *restrict sum = own + channels, *restrict square = own + 2 * channels;
    for (i64 row = 0; row < n_rows; row++)
        for (i64 channel = 0; channel < channels; channel++) about[channel] += rows[row * channels + channel];
    for (i64 channel = 0; channel < channels; channel++) about[channel] /= n_rows;
    for (i64 row = 0; row < n_rows; row++)
        for (i64 channel = 0; channel < channels; channel++) {
            REAL distance = rows[row * channels + channel] - about[channel];
            sum[channel] += distance; /* which is zero but for rounding */
            square[channel] += distance * distance;
        }
    double n_all = n_before + n_rows, part = n_rows / n_all;
    for (i64 channel = 0; channel < channels; channel++) {
        double rest = (double)sum[channel] / n_rows, distance = about[channel] + rest - means[channel];
        means[channel] += distance * part;
        squares[channel] += square[channel] - rest * sum[channel] + distance * distance * n_before * part;
    }
}

/* ---- backwards */

/* The gradient before rectifying; zero where that gave zero. */
INLINE REAL NAMED(passed_back)(REAL gradient, REAL number) { return number <= 0 ? 0 : gradient; }

INLINE void NAMED(sum_row)(i64 channels, const REAL *restrict from, const REAL *restrict gradient,
                           const REAL *restrict factor, const REAL *restrict shift, const REAL *restrict kept,
                           const REAL *restrict mean, REAL *restrict sums, REAL *restrict products) {
    for (i64 channel = 0; channel < channels; channel++) {
        REAL given = kept ? gradient[channel] * kept[channel] : gradient[channel];
        given = NAMED(passed_back)(given, from[channel] * factor[channel] + shift[channel]);
        sums[channel] += given;
        products[channel] += given * (from[channel] - mean[channel]);
    }
}

INLINE void NAMED(pull_row)(i64 channels, const REAL *restrict from, const REAL *restrict gradient,
                            const REAL *restrict factor, const REAL *restrict shift, const REAL *restrict kept,
                            const REAL *restrict slope, const REAL *restrict offset, REAL *restrict to) {
    for (i64 channel = 0; channel < channels; channel++) {
        REAL given = kept ? gradient[channel] * kept[channel] : gradient[channel];
        given = NAMED(passed_back)(given, from[channel] * factor[channel] + shift[channel]);
        to[channel] = given * factor[channel];
        if (slope) to[channel] += from[channel] * slope[channel] + offset[channel];
    }
}

/* ---- what is called from outside; the result is zero, or one if there was no memory */

/* Mean and variance of every channel, in double precision. */
EXPORTED i64 NAMED(bellnet_moments)(const BetweenCall *call) {
    i64 n_rows = call->n_rows, channels = call->channels, n_threads = call->n_threads;
    const REAL *rows = call->rows;
    double *mean = call->sums, *variance = call->products;
    i64 size = rounded(channels), each = 5 * size;
    double *memory = take_block(n_threads * each * sizeof(double));
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        i64 first, last = share(team, n_rows, &first);
        double *means = memory + team.number * each, *squares = means + size;
        memset(means, 0, 2 * size * sizeof(double));
        for (i64 row = first; row < last; row += BETWEEN_ROWS)
            NAMED(add_moments)(rows + row * channels, least(last - row, BETWEEN_ROWS), channels,
                               (REAL *)(squares + size), means, squares, row - first);
        wait_for(team);
        if (team.number == 0) {
            double n_before = 0;
            memset(mean, 0, channels * sizeof(double)), memset(variance, 0, channels * sizeof(double));
            for (int member = 0; member < team.size; member++) {
                Team other = {member, team.size};
                i64 from, n_own = share(other, n_rows, &from) - from;
                if (!n_own) continue;
                const double *others = memory + member * each, *own = others + size;
                double n_all = n_before + n_own, part = n_own / n_all;
                for (i64 channel = 0; channel < channels; channel++) {
                    double distance = others[channel] - mean[channel];
                    mean[channel] += distance * part;
                    variance[channel] += own[channel] + distance * distance * n_before * part;
                }
                n_before = n_all;
            }
            for (i64 channel = 0; channel < channels; channel++) variance[channel] /= n_before;
        }
    })
    give_block(memory);
    return 0;
}

static Between NAMED(between_of)(const BetweenCall *call) {
    return (Between){call->n_rows, call->channels, call->graphs, call->rows, call->factor, call->shift, call->kept};
}

EXPORTED i64 NAMED(bellnet_between)(const BetweenCall *call) {
    Between given = NAMED(between_of)(call);
    i64 n_rows = given.n_rows, channels = given.channels, n_threads = call->n_threads;
    const REAL *rows = given.rows, *factor = given.factor, *shift = given.shift, *before = call->before;
    REAL *result = call->result;
    DO_IN_PARALLEL(n_threads, {
        i64 first, last = share(team, n_rows, &first);
        for (i64 row = first; row < last; row++) {
            const REAL *own = NAMED(kept_of)(&given, row), *from = rows + row * channels;
            REAL *to = result + row * channels;
            if (own && before)
                NAMED(rectify_row)(channels, from, factor, shift, own, before + row * channels, to);
            else if (own)
                NAMED(rectify_row)(channels, from, factor, shift, own, NULL, to);
            else if (before)
                NAMED(rectify_row)(channels, from, factor, shift, NULL, before + row * channels, to);
            else
                NAMED(rectify_row)(channels, from, factor, shift, NULL, NULL, to);
        }
    })
    return 0;
}

/* Of every channel the sum of gradients before rectifying, and of their products with distances from the mean. */
EXPORTED i64 NAMED(bellnet_between_sums)(const BetweenCall *call) {
    Between given = NAMED(between_of)(call);
    i64 n_rows = given.n_rows, channels = given.channels, n_threads = call->n_threads;
    const REAL *rows = given.rows, *factor = given.factor, *shift = given.shift, *gradient = call->gradient;
    const REAL *mean = call->mean;
    double *sums = call->sums, *products = call->products;
    i64 size = rounded(channels), each = 4 * size;
    double *memory = take_block(n_threads * each * sizeof(double));
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        i64 first, last = share(team, n_rows, &first);
        double *totals = memory + team.number * each;
        REAL *own = (REAL *)(totals + 2 * size);
        memset(totals, 0, 2 * size * sizeof(double));
        for (i64 start = first; start < last; start += BETWEEN_ROWS) {
            memset(own, 0, 2 * channels * sizeof(REAL));
            for (i64 row = start; row < least(last, start + BETWEEN_ROWS); row++) {
                const REAL *of_row = NAMED(kept_of)(&given, row), *from = rows + row * channels;
                const REAL *pulled = gradient + row * channels;
                if (of_row)
                    NAMED(sum_row)(channels, from, pulled, factor, shift, of_row, mean, own, own + channels);
                else
                    NAMED(sum_row)(channels, from, pulled, factor, shift, NULL, mean, own, own + channels);
            }
            for (i64 channel = 0; channel < channels; channel++)
                totals[channel] += own[channel], totals[size + channel] += own[channels + channel];
        }
        wait_for(team);
        if (team.number == 0) {
            memset(sums, 0, channels * sizeof(double)), memset(products, 0, channels * sizeof(double));
            for (int member = 0; member < team.size; member++)
                for (i64 channel = 0; channel < channels; channel++) {
                    sums[channel] += memory[member * each + channel];
                    products[channel] += memory[member * each + size + channel];
                }
        }
    })
    give_block(memory);
    return 0;
}

/* The gradient of rows: what is passed back times the factor, and unless moments are given, what they make of a row. */
EXPORTED i64 NAMED(bellnet_between_back)(const BetweenCall *call) {
    Between given = NAMED(between_of)(call);
    i64 n_rows = given.n_rows, channels = given.channels, n_threads = call->n_threads;
    const REAL *rows = given.rows, *factor = given.factor, *shift = given.shift, *gradient = call->gradient;
    const REAL *slope = call->slope, *offset = call->offset;
    REAL *of_rows = call->result;
    DO_IN_PARALLEL(n_threads, {
        i64 first, last = share(team, n_rows, &first);
        for (i64 row = first; row < last; row++) {
            const REAL *own = NAMED(kept_of)(&given, row), *from = rows + row * channels;
            const REAL *pulled = gradient + row * channels;
            REAL *to = of_rows + row * channels;
            if (own && slope)
                NAMED(pull_row)(channels, from, pulled, factor, shift, own, slope, offset, to);
            else if (slope)
                NAMED(pull_row)(channels, from, pulled, factor, shift, NULL, slope, offset, to);
            else
                NAMED(pull_row)(channels, from, pulled, factor, shift, own, NULL, NULL, to);
        }
    })
    return 0;
}

#undef NAMED
#undef Between
