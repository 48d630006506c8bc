/* Steps between two layers: every channel shifted and scaled, ReLU, dropout and the addition of a residual.
 *
 * Forward, the rows are read once for the moments and once for the result; backward once for sums and once for the
 * gradient. A few rows are summed in their own dtype, and these sums in double precision.
 */
#define NORM_ROWS 64 /* rows that are summed in their own dtype */

INLINE const REAL *NAMED(mask_of)(const NormCall *call, i64 row) {
    return call->mask ? (const REAL *)call->mask + (call->graphs ? call->graphs[row] : 0) * call->n_channels : NULL;
}

/* ---- forward pass */

INLINE void NAMED(norm_relu_row)(i64 n_channels, const REAL *restrict from, const REAL *restrict factor,
                                 const REAL *restrict shift, const REAL *restrict mask, const REAL *restrict residual,
                                 REAL *restrict to) {
    for (i64 channel = 0; channel < n_channels; channel++) {
        REAL value = from[channel] * factor[channel] + shift[channel];
        value = value < 0 ? 0 : value; /* NaN stays NaN */
        if (mask) value *= mask[channel];
        to[channel] = residual ? value + residual[channel] : value;
    }
}

EXPORTED i64 NAMED(bellnet_norm_relu)(const NormCall *call) {
    i64 n_rows = call->n_rows, n_channels = call->n_channels, n_threads = call->n_threads;
    const REAL *factor = call->factor, *shift = call->shift;
    DO_IN_PARALLEL(n_threads, {
        i64 first, last = share(team, n_rows, &first);
        for (i64 row = first; row < last; row++) {
            const REAL *mask = NAMED(mask_of)(call, row), *from = (const REAL *)call->rows + row * n_channels;
            const REAL *residual = call->residual ? (const REAL *)call->residual + row * n_channels : NULL;
            REAL *to = (REAL *)call->result + row * n_channels;
            if (mask && residual)
                NAMED(norm_relu_row)(n_channels, from, factor, shift, mask, residual, to);
            else if (mask)
                NAMED(norm_relu_row)(n_channels, from, factor, shift, mask, NULL, to);
            else if (residual)
                NAMED(norm_relu_row)(n_channels, from, factor, shift, NULL, residual, to);
            else
                NAMED(norm_relu_row)(n_channels, from, factor, shift, NULL, NULL, to);
        }
    })
    return 0;
}

/* Combine the means and sums of squared deviations of n_before and of n_own rows. */
static void NAMED(combine_moments)(i64 n_channels, double *means, double *squares, double n_before, const double *own_means,
                                   const double *own_squares, double n_own) {
    for (i64 channel = 0; channel < n_channels; channel++) {
        double deviation = own_means[channel] - means[channel], part = n_own / (n_before + n_own);
        means[channel] += deviation * part;
        squares[channel] += own_squares[channel] + deviation * deviation * n_before * part;
    }
}

/* Add the moments of some rows to those of the rows before; `own` is scratch memory for 3 rows. */
static void NAMED(add_moments)(const REAL *rows, i64 n_rows, i64 n_channels, REAL *own, double *means, double *squares,
                               double n_before) {
    memset(own, 0, 3 * n_channels * sizeof(REAL));
    REAL *restrict about = own, *restrict sum = own + n_channels, *restrict square = own + 2 * n_channels;
    for (i64 row = 0; row < n_rows; row++)
        for (i64 channel = 0; channel < n_channels; channel++) about[channel] += rows[row * n_channels + channel];
    for (i64 channel = 0; channel < n_channels; channel++) about[channel] /= n_rows;
    for (i64 row = 0; row < n_rows; row++)
        for (i64 channel = 0; channel < n_channels; channel++) {
            REAL deviation = rows[row * n_channels + channel] - about[channel];
            sum[channel] += deviation; /* which is zero but for rounding */
            square[channel] += deviation * deviation;
        }
    for (i64 channel = 0; channel < n_channels; channel++) {
        double rest = (double)sum[channel] / n_rows, own_mean = about[channel] + rest;
        double own_square = square[channel] - rest * sum[channel];
        NAMED(combine_moments)(1, means + channel, squares + channel, n_before, &own_mean, &own_square, n_rows);
    }
}

/* Mean and variance of every channel, in double precision. */
EXPORTED i64 NAMED(bellnet_moments)(const NormCall *call) {
    i64 n_rows = call->n_rows, n_channels = call->n_channels, n_threads = call->n_threads;
    const REAL *rows = call->rows;
    double *mean = call->sums, *variance = call->products;
    i64 size = rounded(n_channels), each = 5 * size;
    double *memory = acquire_block(n_threads * each * sizeof(double));
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        i64 first, last = share(team, n_rows, &first);
        double *means = memory + team.number * each, *squares = means + size;
        memset(means, 0, 2 * size * sizeof(double));
        for (i64 row = first; row < last; row += NORM_ROWS)
            NAMED(add_moments)(rows + row * n_channels, least(last - row, NORM_ROWS), n_channels, (REAL *)(squares + size),
                               means, squares, row - first);
        wait_for(team);
        if (team.number == 0) {
            double n_before = 0;
            memset(mean, 0, n_channels * sizeof(double)), memset(variance, 0, n_channels * sizeof(double));
            for (int member = 0; member < team.size; member++) {
                i64 from, n_own = share((Team){member, team.size}, n_rows, &from) - from;
                const double *own = memory + member * each;
                if (n_own) NAMED(combine_moments)(n_channels, mean, variance, n_before, own, own + size, n_own);
                n_before += n_own;
            }
            for (i64 channel = 0; channel < n_channels; channel++) variance[channel] /= n_before;
        }
    })
    release_block(memory);
    return 0;
}

/* ---- backward pass */

/* The gradient before ReLU of one value: zero where ReLU gave zero. */
INLINE REAL NAMED(relu_gradient)(i64 channel, const REAL *from, const REAL *gradient, const REAL *factor, const REAL *shift,
                                 const REAL *mask) {
    REAL given = mask ? gradient[channel] * mask[channel] : gradient[channel];
    return from[channel] * factor[channel] + shift[channel] <= 0 ? 0 : given;
}

INLINE void NAMED(sum_gradient)(i64 n_channels, const REAL *restrict from, const REAL *restrict gradient,
                                const REAL *restrict factor, const REAL *restrict shift, const REAL *restrict mask,
                                const REAL *restrict mean, REAL *restrict sums, REAL *restrict products) {
    for (i64 channel = 0; channel < n_channels; channel++) {
        REAL given = NAMED(relu_gradient)(channel, from, gradient, factor, shift, mask);
        sums[channel] += given;
        products[channel] += given * (from[channel] - mean[channel]);
    }
}

INLINE void NAMED(write_norm_gradient)(i64 n_channels, const REAL *restrict from, const REAL *restrict gradient,
                                       const REAL *restrict factor, const REAL *restrict shift, const REAL *restrict mask,
                                       const REAL *restrict slope, const REAL *restrict offset, REAL *restrict to) {
    for (i64 channel = 0; channel < n_channels; channel++) {
        to[channel] = NAMED(relu_gradient)(channel, from, gradient, factor, shift, mask) * factor[channel];
        if (slope) to[channel] += from[channel] * slope[channel] + offset[channel];
    }
}

/* For every channel the sum of the gradients before ReLU, and of their products with deviations from the mean. */
EXPORTED i64 NAMED(bellnet_norm_relu_sums)(const NormCall *call) {
    i64 n_rows = call->n_rows, n_channels = call->n_channels, n_threads = call->n_threads;
    const REAL *factor = call->factor, *shift = call->shift, *mean = call->mean;
    i64 size = rounded(n_channels), each = 4 * size;
    double *memory = acquire_block(n_threads * each * sizeof(double)), *sums = call->sums, *products = call->products;
    if (!memory) return 1;
    DO_IN_PARALLEL(n_threads, {
        i64 first, last = share(team, n_rows, &first);
        double *totals = memory + team.number * each;
        REAL *own = (REAL *)(totals + 2 * size), *own_products = own + n_channels;
        memset(totals, 0, 2 * size * sizeof(double));
        for (i64 start = first; start < last; start += NORM_ROWS) {
            memset(own, 0, 2 * n_channels * sizeof(REAL));
            for (i64 row = start; row < least(last, start + NORM_ROWS); row++) {
                const REAL *mask = NAMED(mask_of)(call, row), *from = (const REAL *)call->rows + row * n_channels;
                const REAL *gradient = (const REAL *)call->gradient + row * n_channels;
                if (mask)
                    NAMED(sum_gradient)(n_channels, from, gradient, factor, shift, mask, mean, own, own_products);
                else
                    NAMED(sum_gradient)(n_channels, from, gradient, factor, shift, NULL, mean, own, own_products);
            }
            for (i64 channel = 0; channel < n_channels; channel++)
                totals[channel] += own[channel], totals[size + channel] += own_products[channel];
        }
        wait_for(team);
        if (team.number == 0) {
            memset(sums, 0, n_channels * sizeof(double)), memset(products, 0, n_channels * sizeof(double));
            for (int member = 0; member < team.size; member++)
                for (i64 channel = 0; channel < n_channels; channel++) {
                    sums[channel] += memory[member * each + channel];
                    products[channel] += memory[member * each + size + channel];
                }
        }
    })
    release_block(memory);
    return 0;
}

/* The gradient of the rows; slope and offset are NULL unless the moments are those of the rows. */
EXPORTED i64 NAMED(bellnet_norm_relu_backward)(const NormCall *call) {
    i64 n_rows = call->n_rows, n_channels = call->n_channels, n_threads = call->n_threads;
    const REAL *factor = call->factor, *shift = call->shift, *slope = call->slope, *offset = call->offset;
    DO_IN_PARALLEL(n_threads, {
        i64 first, last = share(team, n_rows, &first);
        for (i64 row = first; row < last; row++) {
            const REAL *mask = NAMED(mask_of)(call, row), *from = (const REAL *)call->rows + row * n_channels;
            const REAL *gradient = (const REAL *)call->gradient + row * n_channels;
            REAL *to = (REAL *)call->result + row * n_channels;
            if (mask && slope)
                NAMED(write_norm_gradient)(n_channels, from, gradient, factor, shift, mask, slope, offset, to);
            else if (slope)
                NAMED(write_norm_gradient)(n_channels, from, gradient, factor, shift, NULL, slope, offset, to);
            else
                NAMED(write_norm_gradient)(n_channels, from, gradient, factor, shift, mask, NULL, NULL, to);
        }
    })
    return 0;
}

#undef NORM_ROWS
