/* Broadcasts: the rows of a stack from those of its children, tile by tile, and from the product of its level.
 *
 * The product is added while a tile is in the cache: the rows that each of its rows is computed from are gathered side by
 * side, one permutation after the other. In the backward pass these are also multiplied with the rows of the contractions,
 * which gives the gradient of the matrices.
 */
#define Mixing NAMED(Mixing)

/* The product of a level. */
typedef struct {
    const Tree *given; /* the tree whose rows are multiplied */
    i64 stack;
    i64 n_permutations;
    const Permutation *permutations;
    const REAL *packed;       /* the matrices of all permutations below each other; NULL for no product */
    const REAL *bias;         /* or NULL */
    const Tree *contractions; /* whose rows gradients are multiplied with, or NULL */
    REAL *grad_matrices;      /* (width, padded(n_permutations * given width)), added to */
} Mixing;

/* ---- for dense and sparse rows */

INLINE void NAMED(copy_or_clear)(REAL *to, const REAL *from, i64 width) {
    if (from)
        NAMED(copy_row)(to, from, width);
    else
        NAMED(clear_row)(to, width);
}

/* Add the products of the active rows to those that pointers name, or write them there. */
static void NAMED(multiply_active)(const ActiveRows *active, const REAL *rows, i64 stride, i64 height, const REAL *packed,
                                   i64 width, REAL *const *pointers, int is_first) {
    REAL *into[BLOCK_ROWS];
    for (i64 one = 0; one < active->n_rows && !active->are_all; one++) into[one] = pointers[active->row[one]];
    NAMED(multiply)(rows, stride, active->n_rows, height, packed, width, active->are_all ? pointers : into, is_first);
}

/* Add to the gradient of the matrices the product of gathered rows and contractions; `own` is NULL for rows in order. */
static void NAMED(add_grad_matrices)(const Mixing *mixing, i64 number, const ActiveRows *active, const i64 *own, i64 start,
                                     REAL *gathered, i64 stride, i64 height, i64 width) {
    if (!mixing || !mixing->contractions || !active->n_rows) return;
    const REAL *rows = NAMED(rows_of)(mixing->contractions, number) + start * width;
    REAL *left = gathered + BLOCK_ROWS * stride;
    int are_copied = own || !active->are_all;
    for (i64 one = 0; one < active->n_rows; one++) {
        i64 row = active->are_all ? one : active->row[one];
        for (i64 column = height; column < stride; column++) gathered[one * stride + column] = 0;
        if (are_copied) NAMED(copy_row)(left + one * width, rows + (own ? own[row] : row) * width, width);
    }
    NAMED(multiply_transposed)(are_copied ? left : rows, width, width, gathered, stride, NAMED(lanes)(height), active->n_rows,
                               mixing->grad_matrices);
}

/* A sparse row multiplied by its factors. */
static void NAMED(scale_sparse)(const Stack *stack, i64 row, REAL *values) {
    for (i64 one = 0, column = 0; one < stack->n_row_factors; one++) {
        REAL factor = ((const REAL *)stack->row_factors)[row * stack->n_row_factors + one];
        for (i64 end = column + stack->factor_width; column < end; column++) values[column] *= factor;
    }
}

/* Write products that are scaled, and the bias, before the children are added; return whether there was something. */
static int NAMED(begin_rows)(const Mixing *mixing, const Stack *stack, const REAL *factors, int is_scaled,
                             const ActiveRows *active, i64 start, i64 n_rows, const REAL *gathered, i64 stride, i64 height,
                             REAL *const *pointers) {
    if (mixing && mixing->packed && is_scaled) {
        for (i64 row = 0; row < n_rows && !active->are_all; row++) NAMED(clear_row)(pointers[row], stack->width);
        NAMED(multiply_active)(active, gathered, stride, height, mixing->packed, stack->width, pointers, active->are_all);
        for (i64 row = 0; row < n_rows; row++) {
            if (!factors) NAMED(scale_sparse)(stack, start + row, pointers[row]);
            for (i64 column = 0; factors && column < stack->width; column++)
                pointers[row][column] *= factors[stack->factor_offset + column];
        }
        return 1;
    }
    if (!mixing || !mixing->bias) return 0;
    for (i64 row = 0; row < n_rows; row++) NAMED(copy_row)(pointers[row], mixing->bias, stack->width);
    return 1;
}

/* ---- dense rows */

/* Gather the rows that a tile is computed from, side by side for every permutation, but those that are all zeros. */
static __attribute__((noinline)) void NAMED(gather_marked)(REAL *gathered, i64 stride, const REAL *given, i64 width,
                                                           i64 n_permutations, const i64 *starts, const Tile *tile,
                                                           const char *marks, ActiveRows *active) {
    char is_active[BLOCK_ROWS] = {0};
    for (i64 one = 0; one < n_permutations; one++)
        for (i64 row = 0; row < tile->n_rows; row++) is_active[row] |= marks[starts[one] + tile->others[one * BLOCK_ROWS + row]];
    find_active(active, tile->n_rows, is_active);
    for (i64 row = 0; row < active->n_rows; row++)
        for (i64 one = 0; one < n_permutations; one++) {
            i64 other = starts[one] + tile->others[one * BLOCK_ROWS + active->row[row]];
            NAMED(copy_or_clear)(gathered + row * stride + one * width, marks[other] ? given + other * width : NULL, width);
        }
}

/* Enumerate the rows of a tile; `strides` are those of the axes for every permutation, and then for every child. */
static void NAMED(lay_tile)(Tile *tile, const Stack *stack, const i64 *sides, i64 n_strides, const i64 *const *strides) {
    i64 rank = stack->rank, index[MOST_AXES] = {0};
    tile->n_rows = 0;
    memcpy(tile->sides, sides, sizeof(tile->sides));
    for (;;) {
        i64 row = tile->n_rows++, own = 0;
        for (i64 axis = 0; axis < rank; axis++) {
            tile->index[row][axis] = index[axis];
            own += index[axis] * stack->stride[axis];
        }
        tile->own[row] = own;
        i64 axis = rank - 1;
        for (; axis >= 0; axis--) {
            if (++index[axis] < sides[axis]) break;
            index[axis] = 0;
        }
        if (axis < 0) break;
    }
    for (i64 one = 0; one < n_strides; one++)
        for (i64 row = 0; row < tile->n_rows; row++) {
            i64 other = 0;
            for (i64 axis = 0; axis < rank; axis++) other += tile->index[row][axis] * strides[one][axis];
            tile->others[one * BLOCK_ROWS + row] = other;
        }
}

/* Choose the sides of tiles: about equal in all directions, since permutations exchange them. */
static void NAMED(choose_sides)(const Stack *stack, const i64 *extents, i64 *sides) {
    static const i64 usual[] = {1, 64, 8, 4, 3, 2, 2};
    i64 rank = stack->rank;
    for (i64 axis = 0; axis < rank; axis++) {
        i64 side = rank <= 6 ? usual[rank] : axis < rank - 6 ? 1 : 2;
        i64 n_tiles = (extents[axis] + side - 1) / side;
        sides[axis] = (extents[axis] + n_tiles - 1) / n_tiles;
    }
}

/* Copy the rows that a table names, or clear rows if there are none. */
INLINE void NAMED(copy_rows)(REAL *const *to, const REAL *from, const i64 *table, i64 from_width, i64 n_rows, i64 width) {
    for (i64 row = 0; row < n_rows && from; row++) NAMED(copy_row)(to[row], from + table[row] * from_width, width);
    for (i64 row = 0; row < n_rows && !from; row++) NAMED(clear_row)(to[row], width);
}

/* Broadcast the children of a stack to the rows of a tile; `others` are the rows of each child. */
static void NAMED(broadcast_dense)(const Tree *tree, const Stack *stack, const Tile *tile, const i64 *others,
                                   const i64 *origin, REAL *const *rows, int are_begun) {
    const REAL *held = NULL; /* rows of a child with all columns, until there is another one */
    const i64 *held_rows = NULL;
    i64 held_width = 0, n_rows = tile->n_rows;
    for (i64 one = 0; one < stack->n_steps; one++, others += BLOCK_ROWS) {
        const Step *step = tree->steps + stack->first_step + one;
        i64 child_width = tree->stacks[step->child].width, start = 0, between = 0;
        for (i64 axis = 0; axis < stack->rank; axis++) start += origin[axis] * step->stride[axis];
        const REAL *from = NAMED(rows_of)(tree, step->child) + step->child_column + start * child_width;
        int is_diagonal = step->kind == DIAGONAL;
        if (!are_begun && !is_diagonal && step->width == stack->width) {
            if (!held) {
                held = from, held_rows = others, held_width = child_width;
                continue;
            }
            for (i64 row = 0; row < n_rows; row++)
                NAMED(add_two_rows)(rows[row], held + held_rows[row] * held_width, from + others[row] * child_width, step->width);
            held = NULL, are_begun = 1;
            continue;
        }
        if (is_diagonal) between = origin[step->dropped_axis] - origin[step->kept_axis];
        if (is_diagonal && (between >= tile->sides[step->kept_axis] || -between >= tile->sides[step->dropped_axis])) continue;
        if (!are_begun) NAMED(copy_rows)(rows, held, held_rows, held_width, n_rows, stack->width);
        held = NULL, are_begun = 1;
        for (i64 row = 0; row < n_rows; row++) {
            const i64 *index = tile->index[row];
            if (is_diagonal && index[step->dropped_axis] + between != index[step->kept_axis]) continue;
            NAMED(add_row)(rows[row] + step->column, from + others[row] * child_width, step->width);
        }
    }
    if (!are_begun) NAMED(copy_rows)(rows, held, held_rows, held_width, n_rows, stack->width);
}

/* The number of values of scratch memory for finishing a stack. */
INLINE i64 NAMED(scratch_values)(i64 width, i64 given_width, i64 n_permutations) {
    return BLOCK_ROWS * (width + NAMED(padded)(n_permutations * given_width));
}

/* The number of integers for its two tiles. */
INLINE i64 NAMED(tile_integers)(const Stack *stack, i64 n_permutations) {
    return 2 * BLOCK_ROWS * (n_permutations + stack->n_steps);
}

/* The rows of one stack; with `tree` NULL only the gradient of the matrices. */
static void NAMED(finish_dense)(const Tree *tree, const Tree *shape, i64 number, const Mixing *mixing, const REAL *factors,
                                Team team, REAL *gathered, i64 *integers) {
    const Stack *stack = shape->stacks + number, *other = mixing ? mixing->given->stacks + mixing->stack : NULL;
    i64 rank = stack->rank, extents[MOST_AXES] = {0}, sides[MOST_AXES] = {0}, n_tiles[MOST_AXES], origin[MOST_AXES] = {0};
    REAL *own = tree ? NAMED(rows_of)(tree, number) : NULL, *pointers[BLOCK_ROWS];
    int is_filled = 1, is_empty = 0;
    for (i64 axis = 0; axis < rank; axis++) {
        extents[axis] = NAMED(extent)(shape, stack, axis);
        is_filled &= extents[axis] == stack->length[axis];
        is_empty |= extents[axis] == 0;
    }
    if (tree && stack->offset < 0 && !is_filled) {
        i64 first, last = share(team, stack->n_rows, &first);
        memset(own + first * stack->width, 0, (last - first) * stack->width * sizeof(REAL));
        wait_for(team);
    }
    if (is_empty) return;
    NAMED(choose_sides)(stack, extents, sides);
    i64 width = stack->width, n_permutations = mixing ? mixing->n_permutations : 0, given_width = mixing ? other->width : 0;
    i64 height = n_permutations * given_width, stride = mixing ? NAMED(padded)(height) : 0;
    const REAL *given = mixing ? NAMED(rows_of)(mixing->given, mixing->stack) : NULL;
    int is_scaled = factors && stack->factor_offset >= 0;
    i64 n_children = tree ? stack->n_steps : 0, n_strides = n_permutations + n_children, n_all_tiles = 1;
    const char *marks = mixing ? NAMED(marks_of)(mixing->given, mixing->stack) : NULL;
    const i64 *strides[n_strides + 1];
    ActiveRows active;
    i64 starts[n_permutations + 1]; /* of the tile, in the rows that it is computed from */
    for (i64 one = 0; one < n_permutations; one++) strides[one] = mixing->permutations[one].stride;
    for (i64 one = 0; one < n_children; one++) strides[n_permutations + one] = shape->steps[stack->first_step + one].stride;
    Tile whole = {.others = integers}, edge = {.others = integers + n_strides * BLOCK_ROWS, .n_rows = 0};
    NAMED(lay_tile)(&whole, stack, sides, n_strides, strides);
    for (i64 axis = 0; axis < rank; axis++) n_all_tiles *= n_tiles[axis] = (extents[axis] + sides[axis] - 1) / sides[axis];
    i64 first, last = share(team, n_all_tiles, &first);
    for (i64 number_of_tile = first; number_of_tile < last; number_of_tile++) {
        i64 here[MOST_AXES] = {0}, rest = number_of_tile, start = 0;
        int is_edge = 0;
        for (i64 axis = rank - 1; axis >= 0; axis--) {
            origin[axis] = rest % n_tiles[axis] * sides[axis];
            rest /= n_tiles[axis];
            here[axis] = least(sides[axis], extents[axis] - origin[axis]);
            is_edge |= here[axis] != sides[axis];
            start += origin[axis] * stack->stride[axis];
        }
        if (is_edge && (!edge.n_rows || memcmp(edge.sides, here, sizeof(here))))
            NAMED(lay_tile)(&edge, stack, here, n_strides, strides);
        const Tile *tile = is_edge ? &edge : &whole;
        i64 n_rows = tile->n_rows;
        for (i64 one = 0; one < n_permutations; one++) {
            const i64 *others = tile->others + one * BLOCK_ROWS;
            i64 from = 0;
            for (i64 axis = 0; axis < rank; axis++) from += origin[axis] * strides[one][axis];
            starts[one] = from;
            for (i64 row = 0; row < n_rows && !marks; row++)
                NAMED(copy_row)(gathered + row * stride + one * given_width, given + (from + others[row]) * given_width, given_width);
        }
        active.n_rows = n_rows, active.are_all = 1;
        if (marks) NAMED(gather_marked)(gathered, stride, given, given_width, n_permutations, starts, tile, marks, &active);
        NAMED(add_grad_matrices)(mixing, number, &active, tile->own, start, gathered, stride, height, width);
        if (!tree) continue;
        for (i64 row = 0; row < n_rows; row++) pointers[row] = own + (start + tile->own[row]) * width;
        const REAL *packed = mixing && !is_scaled ? mixing->packed : NULL;
        int are_begun = NAMED(begin_rows)(mixing, stack, factors, is_scaled, &active, 0, n_rows, gathered, stride, height, pointers);
        if (stack->n_steps || !packed || !active.are_all) {
            NAMED(broadcast_dense)(tree, stack, tile, tile->others + n_permutations * BLOCK_ROWS, origin, pointers, are_begun);
            are_begun = 1;
        }
        if (packed) NAMED(multiply_active)(&active, gathered, stride, height, packed, width, pointers, !are_begun);
    }
}
