/* Listed rows: which belongs to which is looked up in tables, where dense tensors have strides.
 *
 * Rows of a child are sums of rows of its parent, those of each child together: they are added up one child after the
 * other, always in the same order, whichever thread does it.
 */
#define PORTION 1024 /* so many rows are added up by themselves, lest small numbers vanish in large sums */

#define AHEAD 12     /* rows that are asked for before they are needed: they may be anywhere */

INLINE void NAMED(ask_for)(const REAL *row, i64 width) {
    for (i64 column = 0; column < width; column += (i64)(64 / sizeof(REAL))) __builtin_prefetch(row + column);
}

/* The same for the row that a table names a few places on. */
INLINE void NAMED(ask_ahead)(const REAL *rows, i64 step, const i64 *table, i64 place, i64 end, i64 width) {
    if (place + AHEAD < end && table[place + AHEAD] >= 0) NAMED(ask_for)(rows + table[place + AHEAD] * step, width);
}

/* The sum of rows of a parent, from `first` to before `last` of those in order. */
static void NAMED(sum_listed)(REAL *restrict to, const REAL *restrict rows, i64 step, const i64 *order, i64 first, i64 last,
                              i64 width) {
    NAMED(clear_row)(to, width);
    for (i64 end; first < last; first = end) {
        end = least(first + PORTION, last);
        i64 column = 0;
        for (; column + 3 * WIDE <= width; column += 3 * WIDE) {
            Wide one = {0}, second = {0}, third = {0};
            for (i64 place = first; place < end; place++) {
                const REAL *from = rows + (order ? order[place] : place) * step + column;
                one += *(const Wide *)from;
                second += *(const Wide *)(from + WIDE);
                third += *(const Wide *)(from + 2 * WIDE);
            }
            *(Wide *)(to + column) += one;
            *(Wide *)(to + column + WIDE) += second;
            *(Wide *)(to + column + 2 * WIDE) += third;
        }
        for (; column + WIDE <= width; column += WIDE) {
            Wide one = {0};
            for (i64 place = first; place < end; place++)
                one += *(const Wide *)(rows + (order ? order[place] : place) * step + column);
            *(Wide *)(to + column) += one;
        }
        for (; column + WIDE / 2 <= width; column += WIDE / 2) {
            Half one = {0};
            for (i64 place = first; place < end; place++)
                one += *(const Half *)(rows + (order ? order[place] : place) * step + column);
            *(Half *)(to + column) += one;
        }
        for (; column < width; column++) {
            REAL one = 0;
            for (i64 place = first; place < end; place++) one += rows[(order ? order[place] : place) * step + column];
            to[column] += one;
        }
    }
}

/* A row multiplied by its factors. */
static void NAMED(scale_listed)(const Bundle *bundle, i64 row, REAL *numbers) {
    for (i64 one = 0, column = 0; one < bundle->n_row_factors; one++) {
        REAL factor = ((const REAL *)bundle->row_factors)[row * bundle->n_row_factors + one];
        for (i64 end = column + bundle->factor_width; column < end; column++) numbers[column] *= factor;
    }
}

/* All folds of the whole tensors, each multiplied by its factors at the end. */
static void NAMED(read_listed)(const Tree *tree, Team team) {
    for (i64 number = 0; number < tree->n_bundles; number++) {
        const Bundle *parent = tree->bundles + number;
        const REAL *rows = NAMED(rows_of)(tree, number);
        for (i64 one = 0; one < parent->n_branches; one++) {
            const Branch *branch = tree->branches + parent->first_branch + one;
            const Bundle *child = tree->bundles + branch->child;
            REAL *to = NAMED(rows_of)(tree, branch->child) + branch->child_column;
            i64 first, last = share(team, child->rows, &first);
            for (i64 row = first; row < last; row++)
                if (branch->bounds) {
                    for (i64 place = branch->bounds[row]; branch->order && place < branch->bounds[row + 1]; place++)
                        NAMED(ask_ahead)(rows + branch->column, parent->width, branch->order, place,
                                         branch->bounds[child->rows], branch->width);
                    NAMED(sum_listed)(to + row * child->width, rows + branch->column, parent->width, branch->order,
                                      branch->bounds[row], branch->bounds[row + 1], branch->width);
                } else
                    NAMED(copy_row)(to + row * child->width, rows + row * parent->width + branch->column, branch->width);
        }
        wait_for(team);
    }
    for (i64 number = tree->n_roots; number < tree->n_bundles; number++) {
        const Bundle *bundle = tree->bundles + number;
        if (!bundle->row_factors) continue;
        i64 first, last = share(team, bundle->rows, &first);
        for (i64 row = first; row < last; row++) NAMED(scale_listed)(bundle, row, NAMED(rows_of)(tree, number) + row * bundle->width);
    }
    wait_for(team);
}

/* Some rows begun by what the children of their bundle hand on. */
static void NAMED(begin_listed)(const Tree *tree, const Bundle *bundle, i64 start, i64 n_rows, REAL *rows, int are_begun) {
    for (i64 one = 0; one < bundle->n_branches; one++) {
        const Branch *branch = tree->branches + bundle->first_branch + one;
        i64 child_width = tree->bundles[branch->child].width;
        const REAL *from = NAMED(rows_of)(tree, branch->child) + branch->child_column;
        int covers = branch->width == bundle->width;
        if (!are_begun && !covers)
            for (i64 row = 0; row < n_rows; row++) NAMED(clear_row)(rows + row * bundle->width, bundle->width);
        are_begun |= !covers;
        for (i64 row = 0; row < n_rows; row++) {
            i64 place = branch->whole ? branch->whole[start + row] : start + row;
            REAL *to = rows + row * bundle->width + branch->column;
            if (branch->whole) NAMED(ask_ahead)(from, child_width, branch->whole, start + row, bundle->rows, branch->width);
            if (are_begun && place >= 0)
                NAMED(add_row)(to, from + place * child_width, branch->width);
            else if (!are_begun && place >= 0)
                NAMED(copy_row)(to, from + place * child_width, branch->width);
            else if (!are_begun)
                NAMED(clear_row)(to, branch->width);
        }
        are_begun = 1;
    }
    if (!are_begun)
        for (i64 row = 0; row < n_rows; row++) NAMED(clear_row)(rows + row * bundle->width, bundle->width);
}

/* Those of some rows that are made of any which is not all zeros. */
static void NAMED(keep_listed)(Kept *kept, const Mixing *mixing, i64 start, i64 n_rows, const char *marks) {
    char have[BLOCK_ROWS] = {0};
    for (i64 swap = 0; swap < mixing->n_swaps; swap++) {
        const i64 *found = mixing->strides[swap].found;
        for (i64 row = 0; row < n_rows; row++) {
            i64 place = found ? found[start + row] : start + row;
            have[row] |= place >= 0 && marks[place];
        }
    }
    keep_rows(kept, n_rows, have);
}

/* The rows of one bundle, from those of its children and what its level adds; of `tree` NULL nothing is written. */
static void NAMED(finish_listed)(const Tree *tree, const Tree *shape, i64 number, const Mixing *mixing, int is_scaled,
                                 Team team, REAL *room) {
    const Bundle *bundle = shape->bundles + number, *other = mixing ? mixing->given->bundles + mixing->bundle : NULL;
    REAL *own = tree ? NAMED(rows_of)(tree, number) : NULL, *pointers[BLOCK_ROWS];
    i64 width = bundle->width, n_swaps = mixing ? mixing->n_swaps : 0, given_width = mixing ? other->width : 0;
    i64 height = n_swaps * given_width, step = mixing ? NAMED(padded)(height) : 0;
    const REAL *given = mixing ? NAMED(rows_of)(mixing->given, mixing->bundle) : NULL;
    const REAL *read = mixing && mixing->read ? NAMED(rows_of)(mixing->read, number) : NULL;
    const char *marks = mixing ? NAMED(marks_of)(mixing->given, mixing->bundle) : NULL;
    REAL *left = room + BLOCK_ROWS * step;
    Kept kept;
    is_scaled &= bundle->row_factors != 0;
    i64 n_blocks = (bundle->rows + BLOCK_ROWS - 1) / BLOCK_ROWS, first, last = share(team, n_blocks, &first);
    for (i64 block = first; block < last; block++) {
        i64 start = block * BLOCK_ROWS, n_rows = least(BLOCK_ROWS, bundle->rows - start);
        kept.n_rows = n_rows, kept.are_all = 1;
        if (marks) NAMED(keep_listed)(&kept, mixing, start, n_rows, marks);
        for (i64 swap = 0; swap < n_swaps; swap++) {
            const i64 *found = mixing->strides[swap].found;
            for (i64 one = 0; one < kept.n_rows; one++) {
                i64 row = start + (kept.are_all ? one : kept.row[one]), place = found ? found[row] : row;
                REAL *to = room + one * step + swap * given_width;
                if (found) NAMED(ask_ahead)(given, given_width, found, row, bundle->rows, given_width);
                if (place >= 0 && (!marks || marks[place]))
                    NAMED(copy_row)(to, given + place * given_width, given_width);
                else
                    NAMED(clear_row)(to, given_width);
            }
        }
        if (read && kept.n_rows) {
            for (i64 row = 0; row < kept.n_rows; row++) {
                for (i64 column = height; column < step; column++) room[row * step + column] = 0;
                if (!kept.are_all) NAMED(copy_row)(left + row * width, read + (start + kept.row[row]) * width, width);
            }
            NAMED(pair)(kept.are_all ? read + start * width : left, width, width, room, step, NAMED(lanes)(height), kept.n_rows,
                        mixing->paired);
        }
        if (!tree) continue;
        REAL *rows = own + start * width;
        for (i64 row = 0; row < n_rows; row++) pointers[row] = rows + row * width;
        const REAL *packed = mixing ? mixing->packed : NULL;
        int are_begun = 0;
        if (packed && is_scaled) {
            for (i64 row = 0; row < n_rows && !kept.are_all; row++) NAMED(clear_row)(pointers[row], width);
            NAMED(multiply_kept)(&kept, room, step, height, packed, width, pointers, kept.are_all);
            for (i64 row = 0; row < n_rows; row++) NAMED(scale_listed)(bundle, start + row, pointers[row]);
            packed = NULL;
            are_begun = 1;
        }
        if (mixing && mixing->bias) {
            for (i64 row = 0; row < n_rows; row++) NAMED(copy_row)(pointers[row], mixing->bias, width);
            are_begun = 1;
        }
        if (bundle->n_branches || !packed || !kept.are_all) {
            NAMED(begin_listed)(tree, bundle, start, n_rows, rows, are_begun);
            are_begun = 1;
        }
        if (packed) NAMED(multiply_kept)(&kept, room, step, height, packed, width, pointers, !are_begun);
    }
}
