/* Trees: all folds of the tensors on one side of a plan, for one graph; and reading them, downwards.
 *
 * Every bundle is added to all its children while its rows are in the cache.
 */
#define Tree NAMED(Tree)

/* One side of a plan for one graph: where its numbers are, and how many nodes there are. */
typedef struct {
    const Bundle *bundles;
    const Branch *branches;
    i64 n_roots, n_bundles, n_numbers;
    REAL *const *roots;
    REAL *memory;
    i64 graph;
    const i64 *limits; /* for every node set, the nodes of this graph; NULL if all axes are filled */
    Marks marks;
} Tree;

INLINE REAL *NAMED(rows_of)(const Tree *tree, i64 number) {
    const Bundle *bundle = tree->bundles + number;
    if (bundle->place < 0) return tree->roots[-1 - bundle->place] + tree->graph * bundle->rows * bundle->width;
    return tree->memory + bundle->place;
}

INLINE i64 NAMED(extent)(const Tree *tree, const Bundle *bundle, i64 axis) {
    i64 length = bundle->length[axis];
    return tree->limits ? least(length, tree->limits[bundle->set[axis]]) : length;
}

INLINE char *NAMED(marks_of)(const Tree *tree, i64 number) {
    return tree->marks.rows && tree->marks.places[number] >= 0 ? tree->marks.rows + tree->marks.places[number] : NULL;
}

/* Look at the rows of some bundles, as far as there are nodes. Where the largest number of each channel is all that is
 * used, hardly a row of the gradient has one. */
static void NAMED(mark_rows)(const Tree *tree, i64 first_bundle, i64 end, Team team) {
    for (i64 number = first_bundle; number < end; number++) {
        char *marks = NAMED(marks_of)(tree, number);
        if (!marks) continue;
        const Bundle *bundle = tree->bundles + number;
        const REAL *rows = NAMED(rows_of)(tree, number);
        i64 n_rows = bundle->rows, first, last;
        if (tree->limits) {
            n_rows = 1;
            for (i64 axis = 0; axis < bundle->rank; axis++) n_rows *= NAMED(extent)(tree, bundle, axis);
        }
        last = share(team, n_rows, &first);
        for (i64 one = first; one < last; one++) {
            i64 row = tree->limits ? 0 : one, rest = one;
            for (i64 axis = bundle->rank - 1; axis >= 0 && tree->limits; axis--) {
                i64 extent = NAMED(extent)(tree, bundle, axis);
                row += rest % extent * bundle->stride[axis];
                rest /= extent;
            }
            marks[row] = !NAMED(is_zero)(rows + row * bundle->width, bundle->width);
        }
    }
    if (tree->marks.rows) wait_for(team);
}

/* Add rows to rows; those that are added to may be one and the same. */
static void NAMED(add_rows)(REAL *restrict to, i64 to_step, const REAL *restrict from, i64 from_step, i64 n_rows,
                            i64 width) {
    if (to_step || n_rows < 2) {
        for (i64 row = 0; row < n_rows; row++) NAMED(add_row)(to + row * to_step, from + row * from_step, width);
        return;
    }
    i64 column = 0;
    for (; column + 2 * WIDE <= width; column += 2 * WIDE) {
        Wide one = {0}, other = {0};
        for (i64 row = 0; row < n_rows; row++) {
            one += *(const Wide *)(from + row * from_step + column);
            other += *(const Wide *)(from + row * from_step + column + WIDE);
        }
        *(Wide *)(to + column) += one;
        *(Wide *)(to + column + WIDE) += other;
    }
    for (; column + WIDE <= width; column += WIDE) {
        Wide one = {0};
        for (i64 row = 0; row < n_rows; row++) one += *(const Wide *)(from + row * from_step + column);
        *(Wide *)(to + column) += one;
    }
    for (; column + WIDE / 2 <= width; column += WIDE / 2) {
        Half one = {0};
        for (i64 row = 0; row < n_rows; row++) one += *(const Half *)(from + row * from_step + column);
        *(Half *)(to + column) += one;
    }
    for (i64 row = 0; row < n_rows; row++)
        for (i64 rest = column; rest < width; rest++) to[rest] += from[row * from_step + rest];
}

/* Add neighbouring rows of a line to all children of its bundle; `index` is where the line is on all axes but the last. */
INLINE void NAMED(read_run)(const Tree *tree, const Bundle *parent, const REAL *line, const i64 *index, i64 first, i64 last,
                            REAL *memory) {
    i64 inner = parent->rank - 1;
    for (i64 one = 0; one < parent->n_branches; one++) {
        const Branch *branch = tree->branches + parent->first_branch + one;
        const Bundle *child = tree->bundles + branch->child;
        i64 from = first, n_rows = last - first, step = inner >= 0 ? branch->step[inner] : 0, to = first * step;
        for (i64 axis = 0; axis < inner; axis++) to += index[axis] * branch->step[axis];
        if (branch->kind == DIAGONAL && branch->goes == inner) {
            from = index[branch->stays];
            n_rows = first <= from && from < last;
        } else if (branch->kind == DIAGONAL && index[branch->stays] != index[branch->goes]) {
            continue;
        }
        NAMED(add_rows)(memory + child->place + to * child->width + branch->child_column, step * child->width,
                        line + from * parent->width + branch->column, parent->width, n_rows, branch->width);
    }
}

/* Add some of the rows of a bundle, those from `first` to `last` on its first axis, to all its children. */
static void NAMED(read_rows)(const Tree *tree, i64 number, i64 first, i64 last, REAL *memory) {
    const Bundle *parent = tree->bundles + number;
    const REAL *rows = NAMED(rows_of)(tree, number);
    const char *marks = number < tree->n_roots ? NAMED(marks_of)(tree, number) : NULL; /* others are not added up yet */
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
        for (i64 run = inner_first, last_of_run; run < end; run = last_of_run) {
            last_of_run = marks ? run + 1 : end;
            if (marks && !marks[line + run]) continue;
            while (last_of_run < end && marks[line + last_of_run]) last_of_run++;
            NAMED(read_run)(tree, parent, rows + line * parent->width, index, run, last_of_run, memory);
        }
        i64 axis = inner - 1;
        for (; axis >= 0; axis--) {
            if (++index[axis] < extents[axis]) break;
            index[axis] = axis == 0 ? first : 0;
        }
        if (axis < 0) return;
    }
}

#define FEW_NUMBERS 16384 /* less than that is not worth waiting for each other */

/* All folds of the whole tensors; `own` is memory of as many numbers for every member of a team. */
static void NAMED(read_tree)(const Tree *tree, Team team, REAL *own) {
    i64 first, last = share(team, tree->n_numbers, &first);
    if (last > first) memset(tree->memory + first, 0, (last - first) * sizeof(REAL));
    wait_for(team);
    for (i64 number = 0; number < tree->n_bundles; number++) {
        const Bundle *parent = tree->bundles + number;
        if (!parent->n_branches) continue;
        i64 n_first = parent->rank ? NAMED(extent)(tree, parent, 0) : 1;
        if (team.size == 1 || parent->rank < 2 || parent->rows * parent->width < FEW_NUMBERS) {
            if (team.number == 0) NAMED(read_rows)(tree, number, 0, n_first, tree->memory);
            wait_for(team);
            continue;
        }
        const Branch *branches = tree->branches + parent->first_branch;
        for (i64 one = 0; one < parent->n_branches; one++) {
            const Bundle *child = tree->bundles + branches[one].child;
            memset(own + team.number * tree->n_numbers + child->place, 0, child->rows * child->width * sizeof(REAL));
        }
        last = share(team, n_first, &first);
        NAMED(read_rows)(tree, number, first, last, own + team.number * tree->n_numbers);
        wait_for(team);
        for (i64 one = 0; one < parent->n_branches; one++) {
            const Bundle *child = tree->bundles + branches[one].child;
            int is_again = 0; /* branches to one child have its memory in common */
            for (i64 other = 0; other < one; other++) is_again |= branches[other].child == branches[one].child;
            if (is_again) continue;
            last = share(team, child->rows * child->width, &first);
            for (int member = 0; member < team.size; member++)
                NAMED(add_row)(tree->memory + child->place + first, own + member * tree->n_numbers + child->place + first,
                               last - first);
        }
        wait_for(team);
    }
}

/* Multiply the rows of every bundle by its factors. */
static void NAMED(scale_tree)(const Tree *tree, const REAL *factors) {
    for (i64 number = tree->n_roots; number < tree->n_bundles; number++) {
        const Bundle *bundle = tree->bundles + number;
        if (bundle->factors < 0) continue;
        REAL *rows = NAMED(rows_of)(tree, number);
        const REAL *by = factors + bundle->factors;
        for (i64 row = 0; row < bundle->rows; row++)
            for (i64 column = 0; column < bundle->width; column++) rows[row * bundle->width + column] *= by[column];
    }
}
