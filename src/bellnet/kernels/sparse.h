/* Contractions and broadcasts of sparse rows: tables take the place of strides.
 *
 * A row of a child is the sum of a group of rows of its parent, always in the same order, whichever thread computes it.
 */
#define PORTION 1024 /* rows that are summed by themselves, so that small values are not lost in large sums */
#define AHEAD 12     /* rows that are prefetched before they are needed */

/* Prefetch the row that a table names a few positions further on. */
INLINE void NAMED(prefetch)(const REAL *rows, i64 stride, const i64 *table, i64 position, i64 end, i64 width) {
    if (position + AHEAD >= end || table[position + AHEAD] < 0) return;
    const REAL *row = rows + table[position + AHEAD] * stride;
    for (i64 column = 0; column < width; column += (i64)(64 / sizeof(REAL))) __builtin_prefetch(row + column);
}

/* All contractions, each multiplied by its factors at the end. */
static void NAMED(contract_sparse)(const Tree *tree, Team team) {
    for (i64 number = 0; number < tree->n_stacks; number++) {
        const Stack *parent = tree->stacks + number;
        for (i64 one = 0; one < parent->n_steps; one++) {
            const Step *step = tree->steps + parent->first_step + one;
            const Stack *child = tree->stacks + step->child;
            const REAL *rows = NAMED(rows_of)(tree, number) + step->column;
            REAL *to = NAMED(rows_of)(tree, step->child) + step->child_column;
            i64 first, last = share(team, child->n_rows, &first);
            for (i64 row = first; row < last; row++) {
                if (!step->bounds) {
                    NAMED(copy_row)(to + row * child->width, rows + row * parent->width, step->width);
                    continue;
                }
                i64 from = step->bounds[row], end = step->bounds[row + 1];
                for (i64 at = from; step->order && at < end; at++)
                    NAMED(prefetch)(rows, parent->width, step->order, at, step->bounds[child->n_rows], step->width);
                NAMED(clear_row)(to + row * child->width, step->width);
                for (; from < end; from += PORTION)
                    NAMED(add_sum)(to + row * child->width, rows, parent->width, step->order, from, least(from + PORTION, end), step->width);
            }
        }
        wait_for(team);
    }
    for (i64 number = tree->n_roots; number < tree->n_stacks; number++) {
        const Stack *stack = tree->stacks + number;
        if (!stack->row_factors) continue;
        i64 first, last = share(team, stack->n_rows, &first);
        for (i64 row = first; row < last; row++) NAMED(scale_sparse)(stack, row, NAMED(rows_of)(tree, number) + row * stack->width);
    }
    wait_for(team);
}

/* Broadcast the children of a stack to some of its rows. */
static void NAMED(broadcast_sparse)(const Tree *tree, const Stack *stack, i64 start, i64 n_rows, REAL *rows, int are_begun) {
    for (i64 one = 0; one <= stack->n_steps; one++) {
        const Step *step = tree->steps + stack->first_step + one;
        int covers = one < stack->n_steps && step->width == stack->width;
        if (!are_begun && !covers)
            for (i64 row = 0; row < n_rows; row++) NAMED(clear_row)(rows + row * stack->width, stack->width);
        if (one == stack->n_steps) break;
        are_begun |= !covers;
        i64 child_width = tree->stacks[step->child].width;
        const REAL *from = NAMED(rows_of)(tree, step->child) + step->child_column;
        for (i64 row = 0; row < n_rows; row++) {
            i64 other = step->segment ? step->segment[start + row] : start + row;
            REAL *to = rows + row * stack->width + step->column;
            if (step->segment) NAMED(prefetch)(from, child_width, step->segment, start + row, stack->n_rows, step->width);
            if (!are_begun)
                NAMED(copy_or_clear)(to, other >= 0 ? from + other * child_width : NULL, step->width);
            else if (other >= 0)
                NAMED(add_row)(to, from + other * child_width, step->width);
        }
        are_begun = 1;
    }
}

/* The active rows of a block: those with a permuted row that is not all zeros. */
static void NAMED(find_active_sparse)(ActiveRows *active, const Mixing *mixing, i64 start, i64 n_rows, const char *marks) {
    char is_active[BLOCK_ROWS] = {0};
    for (i64 one = 0; one < mixing->n_permutations; one++) {
        const i64 *others = mixing->permutations[one].rows;
        for (i64 row = 0; row < n_rows; row++) {
            i64 other = others ? others[start + row] : start + row;
            is_active[row] |= other >= 0 && marks[other];
        }
    }
    find_active(active, n_rows, is_active);
}

/* The rows of one stack; with `tree` NULL only the gradient of the matrices. */
static void NAMED(finish_sparse)(const Tree *tree, const Tree *shape, i64 number, const Mixing *mixing, int is_scaled,
                                 Team team, REAL *gathered) {
    const Stack *stack = shape->stacks + number;
    REAL *own = tree ? NAMED(rows_of)(tree, number) : NULL, *pointers[BLOCK_ROWS];
    i64 width = stack->width, n_permutations = mixing ? mixing->n_permutations : 0;
    i64 given_width = mixing ? mixing->given->stacks[mixing->stack].width : 0;
    i64 height = n_permutations * given_width, stride = mixing ? NAMED(padded)(height) : 0;
    const REAL *given = mixing ? NAMED(rows_of)(mixing->given, mixing->stack) : NULL;
    const char *marks = mixing ? NAMED(marks_of)(mixing->given, mixing->stack) : NULL;
    ActiveRows active;
    is_scaled &= stack->row_factors != 0;
    i64 n_blocks = (stack->n_rows + BLOCK_ROWS - 1) / BLOCK_ROWS, first, last = share(team, n_blocks, &first);
    for (i64 block = first; block < last; block++) {
        i64 start = block * BLOCK_ROWS, n_rows = least(BLOCK_ROWS, stack->n_rows - start);
        active.n_rows = n_rows, active.are_all = 1;
        if (marks) NAMED(find_active_sparse)(&active, mixing, start, n_rows, marks);
        for (i64 one = 0; one < n_permutations; one++) {
            const i64 *others = mixing->permutations[one].rows;
            for (i64 at = 0; at < active.n_rows; at++) {
                i64 row = start + (active.are_all ? at : active.row[at]), other = others ? others[row] : row;
                int is_zero = other < 0 || (marks && !marks[other]);
                if (others) NAMED(prefetch)(given, given_width, others, row, stack->n_rows, given_width);
                NAMED(copy_or_clear)(gathered + at * stride + one * given_width, is_zero ? NULL : given + other * given_width, given_width);
            }
        }
        NAMED(add_grad_matrices)(mixing, number, &active, NULL, start, gathered, stride, height, width);
        if (!tree) continue;
        for (i64 row = 0; row < n_rows; row++) pointers[row] = own + (start + row) * width;
        const REAL *packed = mixing && !is_scaled ? mixing->packed : NULL;
        int are_begun = NAMED(begin_rows)(mixing, stack, NULL, is_scaled, &active, start, n_rows, gathered, stride, height, pointers);
        if (stack->n_steps || !packed || !active.are_all) {
            NAMED(broadcast_sparse)(tree, stack, start, n_rows, pointers[0], are_begun);
            are_begun = 1;
        }
        if (packed) NAMED(multiply_active)(&active, gathered, stride, height, packed, width, pointers, !are_begun);
    }
}
