/* Contractions of the dense tensors on one side of a plan, for one graph.
 *
 * Every stack is added to all its children while its rows are in the cache.
 */
#define Tree NAMED(Tree)

/* The stacks on one side of a plan for one graph. */
typedef struct {
    const Stack *stacks;
    const Step *steps;
    i64 n_roots, n_stacks, size;
    REAL *const *roots;
    REAL *memory;
    i64 graph;
    const i64 *limits; /* of every node set the nodes of this graph; NULL if all axes are filled */
    Marks marks;
} Tree;

INLINE REAL *NAMED(rows_of)(const Tree *tree, i64 number) {
    const Stack *stack = tree->stacks + number;
    if (stack->offset < 0) return tree->roots[-1 - stack->offset] + tree->graph * stack->n_rows * stack->width;
    return tree->memory + stack->offset;
}

INLINE i64 NAMED(extent)(const Tree *tree, const Stack *stack, i64 axis) {
    i64 length = stack->length[axis];
    return tree->limits ? least(length, tree->limits[stack->set[axis]]) : length;
}

INLINE char *NAMED(marks_of)(const Tree *tree, i64 number) {
    return tree->marks.rows && tree->marks.offsets[number] >= 0 ? tree->marks.rows + tree->marks.offsets[number] : NULL;
}

/* Mark the rows of some stacks, as far as there are nodes. The gradient of a maximum has few rows that are not zero. */
static void NAMED(mark_rows)(const Tree *tree, i64 first_stack, i64 end, Team team) {
    for (i64 number = first_stack; number < end; number++) {
        char *marks = NAMED(marks_of)(tree, number);
        if (!marks) continue;
        const Stack *stack = tree->stacks + number;
        const REAL *rows = NAMED(rows_of)(tree, number);
        i64 n_rows = stack->n_rows, first, last;
        if (tree->limits) {
            n_rows = 1;
            for (i64 axis = 0; axis < stack->rank; axis++) n_rows *= NAMED(extent)(tree, stack, axis);
        }
        last = share(team, n_rows, &first);
        for (i64 one = first; one < last; one++) {
            i64 row = tree->limits ? 0 : one, rest = one;
            for (i64 axis = stack->rank - 1; axis >= 0 && tree->limits; axis--) {
                i64 extent = NAMED(extent)(tree, stack, axis);
                row += rest % extent * stack->stride[axis];
                rest /= extent;
            }
            marks[row] = !NAMED(is_zero)(rows + row * stack->width, stack->width);
        }
    }
    if (tree->marks.rows) wait_for(team);
}

/* Add rows to rows, or with `to_step` 0 their sum to one row. */
static void NAMED(add_rows)(REAL *restrict to, i64 to_step, const REAL *restrict from, i64 from_step, i64 n_rows,
                            i64 width) {
    if (to_step || n_rows < 2) {
        for (i64 row = 0; row < n_rows; row++) NAMED(add_row)(to + row * to_step, from + row * from_step, width);
        return;
    }
    NAMED(add_sum)(to, from, from_step, NULL, 0, n_rows, width);
}

/* Add neighbouring rows of a line to all children of its stack; `index` is that of the line on all axes but the last. */
INLINE void NAMED(contract_run)(const Tree *tree, const Stack *parent, const REAL *line, const i64 *index, i64 first,
                                i64 last, REAL *memory) {
    i64 inner = parent->rank - 1;
    for (i64 one = 0; one < parent->n_steps; one++) {
        const Step *step = tree->steps + parent->first_step + one;
        const Stack *child = tree->stacks + step->child;
        i64 start = first, n_rows = last - first, stride = inner >= 0 ? step->stride[inner] : 0, target = first * stride;
        for (i64 axis = 0; axis < inner; axis++) target += index[axis] * step->stride[axis];
        if (step->kind == DIAGONAL && step->dropped_axis == inner) {
            start = index[step->kept_axis];
            n_rows = first <= start && start < last;
        } else if (step->kind == DIAGONAL && index[step->kept_axis] != index[step->dropped_axis]) {
            continue;
        }
        REAL *to = memory + child->offset + target * child->width + step->child_column;
        const REAL *from = line + start * parent->width + step->column;
        NAMED(add_rows)(to, stride * child->width, from, parent->width, n_rows, step->width);
    }
}

/* Add the rows of a stack from `first` to `last` on its first axis to all its children. */
static void NAMED(contract_rows)(const Tree *tree, i64 number, i64 first, i64 last, REAL *memory) {
    const Stack *parent = tree->stacks + number;
    const REAL *rows = NAMED(rows_of)(tree, number);
    const char *marks = number < tree->n_roots ? NAMED(marks_of)(tree, number) : NULL; /* others are incomplete */
    i64 rank = parent->rank, inner = rank - 1, index[MOST_AXES] = {0}, extents[MOST_AXES];
    i64 n_inner = rank ? NAMED(extent)(tree, parent, inner) : 1;
    for (i64 axis = 0; axis < rank; axis++) {
        extents[axis] = NAMED(extent)(tree, parent, axis);
        if (!extents[axis]) return;
    }
    i64 inner_first = 0;
    if (rank == 1) {
        inner_first = first;
        n_inner = last - first;
    } else if (rank) {
        index[0] = first;
        extents[0] = last;
    }
    if (n_inner <= 0 || (rank > 1 && first >= last)) return;
    for (;;) {
        i64 line = 0, end = inner_first + n_inner;
        for (i64 axis = 0; axis < inner; axis++) line += index[axis] * parent->stride[axis];
        for (i64 run = inner_first, end_of_run; run < end; run = end_of_run) {
            end_of_run = marks ? run + 1 : end;
            if (marks && !marks[line + run]) continue;
            while (end_of_run < end && marks[line + end_of_run]) end_of_run++;
            NAMED(contract_run)(tree, parent, rows + line * parent->width, index, run, end_of_run, memory);
        }
        i64 axis = inner - 1;
        for (; axis >= 0; axis--) {
            if (++index[axis] < extents[axis]) break;
            index[axis] = axis == 0 ? first : 0;
        }
        if (axis < 0) return;
    }
}

#define FEW_VALUES 16384 /* with less, threads are not worth waiting for */

/* All contractions; `own` is memory of the same size for every thread. */
static void NAMED(contract_dense)(const Tree *tree, Team team, REAL *own) {
    i64 first, last = share(team, tree->size, &first);
    if (last > first) memset(tree->memory + first, 0, (last - first) * sizeof(REAL));
    wait_for(team);
    for (i64 number = 0; number < tree->n_stacks; number++) {
        const Stack *parent = tree->stacks + number;
        if (!parent->n_steps) continue;
        i64 n_first = parent->rank ? NAMED(extent)(tree, parent, 0) : 1;
        if (team.size == 1 || parent->rank < 2 || parent->n_rows * parent->width < FEW_VALUES) {
            if (team.number == 0) NAMED(contract_rows)(tree, number, 0, n_first, tree->memory);
            wait_for(team);
            continue;
        }
        const Step *steps = tree->steps + parent->first_step;
        for (i64 one = 0; one < parent->n_steps; one++) {
            const Stack *child = tree->stacks + steps[one].child;
            memset(own + team.number * tree->size + child->offset, 0, child->n_rows * child->width * sizeof(REAL));
        }
        last = share(team, n_first, &first);
        NAMED(contract_rows)(tree, number, first, last, own + team.number * tree->size);
        wait_for(team);
        for (i64 one = 0; one < parent->n_steps; one++) {
            const Stack *child = tree->stacks + steps[one].child;
            int is_repeated = 0; /* steps to one child share its memory */
            for (i64 other = 0; other < one; other++) is_repeated |= steps[other].child == steps[one].child;
            if (is_repeated) continue;
            last = share(team, child->n_rows * child->width, &first);
            for (int member = 0; member < team.size; member++)
                NAMED(add_row)(tree->memory + child->offset + first, own + member * tree->size + child->offset + first,
                               last - first);
        }
        wait_for(team);
    }
}

/* Multiply the rows of every stack by its factors. */
static void NAMED(scale_dense)(const Tree *tree, const REAL *factors) {
    for (i64 number = tree->n_roots; number < tree->n_stacks; number++) {
        const Stack *stack = tree->stacks + number;
        if (stack->factor_offset < 0) continue;
        REAL *rows = NAMED(rows_of)(tree, number);
        for (i64 row = 0; row < stack->n_rows; row++)
            for (i64 column = 0; column < stack->width; column++)
                rows[row * stack->width + column] *= factors[stack->factor_offset + column];
    }
}
