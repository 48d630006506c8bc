/* A plan on dense tensors: folds are read, mixed level by level and written, graph by graph.
 *
 * A tree is walked twice. Downwards, every bundle is added to its children (`read_tree`). Upwards, a bundle is finished
 * when its children are: a tile of its rows is begun by what children hand on, and the products of its level are added
 * while the tile is in the cache (`finish`). Backwards is the same with source and target exchanged; there the tiles
 * are paired with what was read as well, which gives the gradient of the matrices.
 */
#define Tree NAMED(Tree)
#define Mixing NAMED(Mixing)
#define Walk NAMED(Walk)
#define Call NAMED(Call)

/* One side of a plan for one graph: where its numbers are, and how many nodes there are. */
typedef struct {
    const Bundle *bundles;
    const Branch *branches;
    i64 n_roots, n_bundles, n_numbers;
    REAL *const *roots;
    REAL *memory;
    i64 graph;
    const i64 *limits; /* for every node set, the nodes of this graph; NULL if all axes are filled */
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

/* ---- downwards */

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

/* Add some of the rows of a bundle, those from `first` to `last` on its first axis, to all its children. */
static void NAMED(read_rows)(const Tree *tree, i64 number, i64 first, i64 last, REAL *memory) {
    const Bundle *parent = tree->bundles + number;
    const Branch *branches = tree->branches + parent->first_branch;
    const REAL *rows = NAMED(rows_of)(tree, number);
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
        i64 start = inner_first;
        for (i64 axis = 0; axis < inner; axis++) start += index[axis] * parent->stride[axis];
        for (i64 one = 0; one < parent->n_branches; one++) {
            const Branch *branch = branches + one;
            const Bundle *child = tree->bundles + branch->child;
            i64 from = start, to = 0, n_rows = n_inner, step = rank ? branch->step[inner] : 0;
            for (i64 axis = 0; axis < inner; axis++) to += index[axis] * branch->step[axis];
            to += inner_first * step;
            if (branch->kind == DIAGONAL) {
                if (branch->goes == inner) {
                    from += index[branch->stays];
                    n_rows = 1;
                } else if (index[branch->stays] != index[branch->goes]) {
                    continue;
                }
            }
            NAMED(add_rows)(memory + child->place + to * child->width + branch->child_column, step * child->width,
                            rows + from * parent->width + branch->column, parent->width, n_rows, branch->width);
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
    memset(tree->memory + first, 0, (last - first) * sizeof(REAL));
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

/* ---- upwards */

/* What a level adds to the bundle that is finished. */
typedef struct {
    const Tree *given; /* the tree whose rows are multiplied */
    i64 bundle;
    i64 n_swaps;
    const Swap *strides;   /* for every swap, by how many rows of that bundle an axis moves */
    const REAL *packed;    /* the matrices of all swaps below each other; NULL for no product */
    const REAL *bias;      /* NULL for none */
    const Tree *read;      /* with the rows of the finished bundle's place that gradients are paired with; or NULL */
    REAL *paired;          /* (width, padded(n_swaps * given width)), added to */
} Mixing;


/* The rows of a tile; `steps` says for every swap, and then for every child, by how many rows an axis moves there. */
static void NAMED(lay_tile)(Tile *tile, const Bundle *bundle, const i64 *sides, i64 n_steps, const i64 *const *steps) {
    i64 rank = bundle->rank, index[MOST_AXES] = {0};
    tile->n_rows = 0;
    memcpy(tile->sides, sides, sizeof(tile->sides));
    for (;;) {
        i64 row = tile->n_rows++, own = 0;
        for (i64 axis = 0; axis < rank; axis++) {
            tile->index[row][axis] = index[axis];
            own += index[axis] * bundle->stride[axis];
        }
        tile->own[row] = own;
        i64 axis = rank - 1;
        for (; axis >= 0; axis--) {
            if (++index[axis] < sides[axis]) break;
            index[axis] = 0;
        }
        if (axis < 0) break;
    }
    for (i64 one = 0; one < n_steps; one++)
        for (i64 row = 0; row < tile->n_rows; row++) {
            i64 place = 0;
            for (i64 axis = 0; axis < rank; axis++) place += tile->index[row][axis] * steps[one][axis];
            tile->places[one * BLOCK_ROWS + row] = place;
        }
}

/* How long the sides of tiles are: about as long in all directions, since swaps turn them. */
static void NAMED(choose_sides)(const Bundle *bundle, const i64 *extents, i64 *sides) {
    static const i64 usual[] = {1, 64, 8, 4, 3, 2, 2};
    i64 rank = bundle->rank;
    for (i64 axis = 0; axis < rank; axis++) {
        i64 side = rank <= 6 ? usual[rank] : axis < rank - 6 ? 1 : 2;
        i64 n_tiles = (extents[axis] + side - 1) / side;
        sides[axis] = (extents[axis] + n_tiles - 1) / n_tiles;
    }
}

/* Rows of a tile begun by what the children of their bundle hand on; `places` says where, for every child and row. */
static void NAMED(begin_rows)(const Tree *tree, const Bundle *bundle, const Tile *tile, const i64 *places,
                              const i64 *origin, REAL *const *rows, int are_begun) {
    const REAL *held = NULL; /* of a child that covers all columns, until the next one comes or none does */
    const i64 *held_places = NULL;
    i64 held_width = 0, n_rows = tile->n_rows;
    for (i64 one = 0; one < bundle->n_branches; one++, places += BLOCK_ROWS) {
        const Branch *branch = tree->branches + bundle->first_branch + one;
        i64 child_width = tree->bundles[branch->child].width, start = 0, between = 0;
        for (i64 axis = 0; axis < bundle->rank; axis++) start += origin[axis] * branch->step[axis];
        const REAL *from = NAMED(rows_of)(tree, branch->child) + branch->child_column + start * child_width;
        int is_diagonal = branch->kind == DIAGONAL;
        if (!are_begun && !is_diagonal && branch->width == bundle->width) {
            if (!held) {
                held = from, held_places = places, held_width = child_width;
                continue;
            }
            for (i64 row = 0; row < n_rows; row++)
                NAMED(sum_rows)(rows[row], held + held_places[row] * held_width, from + places[row] * child_width, branch->width);
            held = NULL, are_begun = 1;
            continue;
        }
        if (is_diagonal) between = origin[branch->goes] - origin[branch->stays];
        if (is_diagonal && (between >= tile->sides[branch->stays] || -between >= tile->sides[branch->goes])) continue;
        if (!are_begun) {
            for (i64 row = 0; row < n_rows; row++)
                if (held)
                    NAMED(copy_row)(rows[row], held + held_places[row] * held_width, bundle->width);
                else
                    NAMED(clear_row)(rows[row], bundle->width);
            held = NULL, are_begun = 1;
        }
        for (i64 row = 0; row < n_rows; row++) {
            const i64 *index = tile->index[row];
            if (is_diagonal && index[branch->goes] + between != index[branch->stays]) continue;
            NAMED(add_row)(rows[row] + branch->column, from + places[row] * child_width, branch->width);
        }
    }
    if (are_begun) return;
    for (i64 row = 0; row < n_rows; row++)
        if (held)
            NAMED(copy_row)(rows[row], held + held_places[row] * held_width, bundle->width);
        else
            NAMED(clear_row)(rows[row], bundle->width);
}

/* How many numbers a member of a team needs while it finishes a bundle. */
INLINE i64 NAMED(room)(i64 width, i64 given_width, i64 n_swaps) {
    return BLOCK_ROWS * (width + NAMED(padded)(n_swaps * given_width));
}

/* How many whole numbers it needs for two tiles. */
INLINE i64 NAMED(tables)(const Bundle *bundle, i64 n_swaps) { return 2 * BLOCK_ROWS * (n_swaps + bundle->n_branches); }

/* The rows of one bundle, from those of its children and what its level adds; of `tree` NULL nothing is written. */
static void NAMED(finish)(const Tree *tree, const Tree *shape, i64 number, const Mixing *mixing, const REAL *factors,
                          Team team, REAL *room, i64 *tables) {
    const Bundle *bundle = shape->bundles + number, *other = mixing ? mixing->given->bundles + mixing->bundle : NULL;
    i64 rank = bundle->rank, extents[MOST_AXES] = {0}, sides[MOST_AXES] = {0}, n_tiles[MOST_AXES], origin[MOST_AXES] = {0};
    REAL *own = tree ? NAMED(rows_of)(tree, number) : NULL, *pointers[BLOCK_ROWS];
    for (i64 axis = 0; axis < rank; axis++) extents[axis] = NAMED(extent)(shape, bundle, axis);
    int is_filled = 1, is_empty = 0;
    for (i64 axis = 0; axis < rank; axis++) {
        is_filled &= extents[axis] == bundle->length[axis];
        is_empty |= extents[axis] == 0;
    }
    if (tree && bundle->place < 0 && !is_filled) {
        i64 first, last = share(team, bundle->rows, &first);
        memset(own + first * bundle->width, 0, (last - first) * bundle->width * sizeof(REAL));
        wait_for(team);
    }
    if (is_empty) return;
    NAMED(choose_sides)(bundle, extents, sides);
    for (i64 axis = 0; axis < rank; axis++) n_tiles[axis] = (extents[axis] + sides[axis] - 1) / sides[axis];
    i64 width = bundle->width, n_swaps = mixing ? mixing->n_swaps : 0, given_width = mixing ? other->width : 0;
    i64 height = n_swaps * given_width, step = mixing ? NAMED(padded)(height) : 0;
    REAL *gathered = room, *left = room + BLOCK_ROWS * step;
    const REAL *given = mixing ? NAMED(rows_of)(mixing->given, mixing->bundle) : NULL;
    const REAL *read = mixing && mixing->read ? NAMED(rows_of)(mixing->read, number) : NULL;
    int is_scaled = factors && bundle->factors >= 0;
    i64 n_children = tree ? bundle->n_branches : 0, n_steps = n_swaps + n_children;
    const i64 *steps[n_steps + 1];
    for (i64 swap = 0; swap < n_swaps; swap++) steps[swap] = mixing->strides[swap].n_axes;
    for (i64 one = 0; one < n_children; one++) steps[n_swaps + one] = shape->branches[bundle->first_branch + one].step;
    Tile whole = {.places = tables}, edge = {.places = tables + n_steps * BLOCK_ROWS, .n_rows = 0};
    NAMED(lay_tile)(&whole, bundle, sides, n_steps, steps);
    i64 all_tiles = 1;
    for (i64 axis = 0; axis < rank; axis++) all_tiles *= n_tiles[axis];
    i64 first, last = share(team, all_tiles, &first);
    for (i64 number_of_tile = first; number_of_tile < last; number_of_tile++) {
        i64 here[MOST_AXES] = {0}, rest = number_of_tile, start = 0;
        int is_edge = 0;
        for (i64 axis = rank - 1; axis >= 0; axis--) {
            origin[axis] = rest % n_tiles[axis] * sides[axis];
            rest /= n_tiles[axis];
            here[axis] = least(sides[axis], extents[axis] - origin[axis]);
            is_edge |= here[axis] != sides[axis];
            start += origin[axis] * bundle->stride[axis];
        }
        const Tile *tile = &whole;
        if (is_edge) {
            if (!edge.n_rows || memcmp(edge.sides, here, sizeof(here))) NAMED(lay_tile)(&edge, bundle, here, n_steps, steps);
            tile = &edge;
        }
        i64 n_rows = tile->n_rows;
        for (i64 swap = 0; swap < n_swaps; swap++) {
            const i64 *strides = mixing->strides[swap].n_axes;
            i64 from = 0;
            for (i64 axis = 0; axis < rank; axis++) from += origin[axis] * strides[axis];
            const i64 *places = tile->places + swap * BLOCK_ROWS;
            for (i64 row = 0; row < n_rows; row++)
                NAMED(copy_row)(gathered + row * step + swap * given_width, given + (from + places[row]) * given_width, given_width);
        }
        if (read) {
            for (i64 row = 0; row < n_rows; row++) {
                for (i64 column = height; column < step; column++) gathered[row * step + column] = 0;
                NAMED(copy_row)(left + row * width, read + (start + tile->own[row]) * width, width);
            }
            NAMED(pair)(left, width, width, gathered, step, NAMED(lanes)(height), n_rows, mixing->paired);
        }
        if (!tree) continue;
        for (i64 row = 0; row < n_rows; row++) pointers[row] = own + (start + tile->own[row]) * width;
        const REAL *packed = mixing ? mixing->packed : NULL;
        int are_begun = 0;
        if (packed && is_scaled) {
            NAMED(multiply)(gathered, step, n_rows, height, packed, width, pointers, 1);
            for (i64 row = 0; row < n_rows; row++)
                for (i64 column = 0; column < width; column++) pointers[row][column] *= factors[bundle->factors + column];
            packed = NULL;
            are_begun = 1;
        }
        if (mixing && mixing->bias) {
            for (i64 row = 0; row < n_rows; row++) NAMED(copy_row)(pointers[row], mixing->bias, width);
            are_begun = 1;
        }
        if (bundle->n_branches || !packed) {
            NAMED(begin_rows)(tree, bundle, tile, tile->places + n_swaps * BLOCK_ROWS, origin, pointers, are_begun);
            are_begun = 1;
        }
        if (packed) NAMED(multiply)(gathered, step, n_rows, height, packed, width, pointers, !are_begun);
    }
}

/* ---- whole walks */

/* All that a call is given. */
typedef struct {
    const Program *program;
    const i64 *words; /* the program as whole numbers, in which its sections are found */
    i64 n_graphs;
    const i64 *counts;   /* (n_sets, n_graphs), or NULL */
    const REAL *factors; /* (n_graphs, n_factors), or NULL */
    REAL *const *roots[2], *const *of_sources;
    REAL *read; /* (n_graphs, memory of the source) */
    const REAL *matrices, *bias;
} Walk;

INLINE const Level *NAMED(levels)(const Walk *walk) { return (const Level *)(walk->words + walk->program->levels); }
INLINE const Bundle *NAMED(bundles)(const Walk *walk, int side) {
    return (const Bundle *)(walk->words + walk->program->side[side].bundles);
}

static Tree NAMED(tree)(const Walk *walk, int side, REAL *const *roots, REAL *memory, i64 graph, const i64 *limits) {
    const Side *one = walk->program->side + side;
    return (Tree){NAMED(bundles)(walk, side), (const Branch *)(walk->words + one->branches), one->n_roots,
                  one->n_bundles, one->memory, roots, memory, graph, limits};
}

static const i64 *NAMED(limits)(const Walk *walk, i64 graph, i64 *limits) {
    if (!walk->counts) return NULL;
    for (i64 set = 0; set < walk->program->n_sets; set++) limits[set] = walk->counts[set * walk->n_graphs + graph];
    return limits;
}

/* The matrices of all levels in panels, for finishing the bundles of one side; `places` says where each begins. */
static i64 NAMED(place_matrices)(const Walk *walk, int side, i64 *places) {
    i64 size = 0;
    for (i64 number = 0; number < walk->program->n_levels; number++) {
        const Level *level = NAMED(levels)(walk) + number;
        places[number] = size;
        size += level->n_swaps * NAMED(bundles)(walk, !side)[level->bundle[!side]].width *
                NAMED(padded)(NAMED(bundles)(walk, side)[level->bundle[side]].width);
    }
    return size;
}

static void NAMED(pack_matrices)(const Walk *walk, int side, const i64 *places, REAL *packed) {
    for (i64 number = 0; number < walk->program->n_levels; number++) {
        const Level *level = NAMED(levels)(walk) + number;
        i64 rows = NAMED(bundles)(walk, 0)[level->bundle[0]].width, columns = NAMED(bundles)(walk, 1)[level->bundle[1]].width;
        for (i64 swap = 0; swap < level->n_swaps; swap++) {
            const REAL *matrix = walk->matrices + level->matrices + swap * rows * columns;
            if (side == 1)
                NAMED(pack)(packed + places[number], level->n_swaps * rows, swap * rows, matrix, rows, columns, columns, 1);
            else
                NAMED(pack)(packed + places[number], level->n_swaps * columns, swap * columns, matrix, columns, rows, 1, columns);
        }
    }
}

static i64 NAMED(tables_of_side)(const Walk *walk, int side) {
    i64 size = 0;
    const Bundle *bundles = NAMED(bundles)(walk, side);
    for (i64 number = 0; number < walk->program->side[side].n_bundles; number++) {
        i64 on = bundles[number].level;
        size = most(size, NAMED(tables)(bundles + number, on < 0 ? 0 : NAMED(levels)(walk)[on].n_swaps));
    }
    return rounded(size);
}

/* How many numbers a member of a team needs to finish the bundles of one side. */
static i64 NAMED(room_of_side)(const Walk *walk, int side) {
    i64 size = 0;
    for (i64 number = 0; number < walk->program->n_levels; number++) {
        const Level *level = NAMED(levels)(walk) + number;
        size = most(size, NAMED(room)(NAMED(bundles)(walk, side)[level->bundle[side]].width,
                                      NAMED(bundles)(walk, !side)[level->bundle[!side]].width, level->n_swaps));
    }
    return size;
}

INLINE const Swap *NAMED(strides)(const Walk *walk, const Level *level, int side) {
    return (const Swap *)(walk->words + walk->program->swaps) + level->first_swap + side * level->n_swaps;
}

static void NAMED(forward_graph)(const Walk *walk, i64 graph, Team team, const REAL *packed, const i64 *places, REAL *memory,
                                 REAL *own, REAL *room, i64 *tables) {
    i64 numbers[MOST_SETS];
    const i64 *limits = NAMED(limits)(walk, graph, numbers);
    const REAL *factors = walk->factors ? walk->factors + graph * walk->program->n_factors : NULL;
    Tree source = NAMED(tree)(walk, 0, walk->roots[0], walk->read + graph * walk->program->side[0].memory, graph, limits);
    Tree target = NAMED(tree)(walk, 1, walk->roots[1], memory, graph, limits);
    NAMED(read_tree)(&source, team, own);
    if (factors) {
        if (team.number == 0) NAMED(scale_tree)(&source, factors);
        wait_for(team);
    }
    for (i64 number = target.n_bundles - 1; number >= 0; number--) {
        i64 on = target.bundles[number].level;
        Mixing mixing;
        if (on >= 0) {
            const Level *level = NAMED(levels)(walk) + on;
            mixing = (Mixing){&source, level->bundle[0], level->n_swaps, NAMED(strides)(walk, level, 1),
                              packed + places[on], on == 0 ? walk->bias : NULL, NULL, NULL};
        }
        NAMED(finish)(&target, &target, number, on >= 0 ? &mixing : NULL, NULL, team, room, tables);
        wait_for(team);
    }
}

static void NAMED(backward_graph)(const Walk *walk, i64 graph, Team team, const REAL *packed, const i64 *places,
                                  REAL *pulled, REAL *memory, REAL *own, REAL *room, i64 *tables, REAL *paired, const i64 *paired_places,
                                  REAL *of_bias) {
    i64 numbers[MOST_SETS];
    const i64 *limits = NAMED(limits)(walk, graph, numbers);
    const REAL *factors = walk->factors ? walk->factors + graph * walk->program->n_factors : NULL;
    Tree given = NAMED(tree)(walk, 1, walk->roots[1], pulled, graph, limits);
    Tree read = NAMED(tree)(walk, 0, walk->roots[0], walk->read + graph * walk->program->side[0].memory, graph, limits);
    Tree into = NAMED(tree)(walk, 0, walk->of_sources, memory, graph, limits);
    NAMED(read_tree)(&given, team, own);
    if (of_bias && team.number == 0) {
        i64 lowest = NAMED(levels)(walk)[0].bundle[1];
        NAMED(add_row)(of_bias, NAMED(rows_of)(&given, lowest), given.bundles[lowest].width);
    }
    for (i64 number = read.n_bundles - 1; number >= 0; number--) {
        i64 on = read.bundles[number].level;
        if (on < 0 && !packed) continue;
        Mixing mixing;
        if (on >= 0) {
            const Level *level = NAMED(levels)(walk) + on;
            mixing = (Mixing){&given, level->bundle[1], level->n_swaps, NAMED(strides)(walk, level, 0),
                              packed ? packed + places[on] : NULL, NULL, &read, paired + paired_places[on]};
        }
        NAMED(finish)(packed ? &into : NULL, &read, number, on >= 0 ? &mixing : NULL, factors, team, room, tables);
        if (packed) wait_for(team);
    }
    wait_for(team);
}

/* ---- weights as they are stored, and matrices as levels use them */

/* The matrices of all levels; with `mean` they also turn sums into means over all nodes. */
static void NAMED(gather)(const Walk *walk, const REAL *const *weights, int mean, REAL *matrices) {
    const Program *program = walk->program;
    const Block *blocks = (const Block *)(walk->words + program->blocks);
    if (program->has_gaps) memset(matrices, 0, program->n_matrices * sizeof(REAL));
    for (i64 number = 0; number < program->n_blocks; number++) {
        const Block *block = blocks + number;
        const REAL *weight = weights[block->weight] + block->map * block->rows * block->columns;
        REAL factor = mean ? (REAL)1 / (REAL)block->n_terms : 1;
        for (i64 row = 0; row < block->rows; row++)
            for (i64 column = 0; column < block->columns; column++)
                matrices[block->place + row * block->step + column] = weight[row * block->columns + column] * factor;
    }
}

/* The transpose: gradients of the weights from those of the matrices. */
static void NAMED(scatter)(const Walk *walk, const REAL *matrices, int mean, REAL *const *weights) {
    const Program *program = walk->program;
    const Block *blocks = (const Block *)(walk->words + program->blocks);
    for (i64 number = 0; number < program->n_blocks; number++) {
        const Block *block = blocks + number;
        REAL *weight = weights[block->weight] + block->map * block->rows * block->columns;
        REAL factor = mean ? (REAL)1 / (REAL)block->n_terms : 1;
        for (i64 row = 0; row < block->rows; row++)
            for (i64 column = 0; column < block->columns; column++)
                weight[row * block->columns + column] = matrices[block->place + row * block->step + column] * factor;
    }
}

static i64 NAMED(count_biases)(const Program *program, const i64 *words) {
    i64 size = 0;
    for (i64 target = 0; target < program->n_biases; target++) size += words[program->biases + target];
    return size;
}

/* ---- what is called from outside; the result is zero, or one if there was no memory */

/* All arguments of a call, taken from the whole numbers that it is given (`_run` in execute/compiled.py). */
typedef struct {
    const i64 *words;
    i64 n_graphs, n_threads, mean;
    const i64 *counts;
    const REAL *factors;
    REAL *read;
    REAL *const *sources, *const *targets;
    const REAL *const *weights, *const *biases;
    REAL *const *of_weights, *const *of_biases, *const *of_sources; /* NULL for what is not there */
} Call;

_Static_assert(sizeof(void *) == sizeof(i64), "pointers are handed over as whole numbers");

static Call NAMED(call)(const i64 *given) {
    enum { WORDS, GRAPHS, THREADS, MEAN, COUNTS, FACTORS, READ, HAS_BIASES, TO_WEIGHTS, TO_BIASES, TO_SOURCES, POINTERS };
    const i64 *words = (const i64 *)given[WORDS], *at = given + POINTERS;
    i64 n_sources = ((const Program *)words)->side[0].n_roots, n_targets = ((const Program *)words)->side[1].n_roots;
    i64 sizes[] = {n_sources, n_targets, n_sources * n_targets, n_targets, n_sources * n_targets, n_targets, n_sources};
    i64 are_there[] = {1, 1, 1, given[HAS_BIASES], given[TO_WEIGHTS], given[TO_BIASES], given[TO_SOURCES]};
    REAL *const *groups[7];
    for (int group = 0; group < 7; group++) {
        groups[group] = are_there[group] ? (REAL *const *)at : NULL;
        if (are_there[group]) at += sizes[group];
    }
    return (Call){.words = words, .n_graphs = given[GRAPHS], .n_threads = given[THREADS], .mean = given[MEAN],
                  .counts = (const i64 *)given[COUNTS], .factors = (const REAL *)given[FACTORS],
                  .read = (REAL *)given[READ], .sources = groups[0], .targets = groups[1],
                  .weights = (const REAL *const *)groups[2], .biases = (const REAL *const *)groups[3],
                  .of_weights = groups[4], .of_biases = groups[5], .of_sources = groups[6]};
}

static Walk NAMED(walk)(const Call *call) {
    return (Walk){.program = (const Program *)call->words, .words = call->words, .n_graphs = call->n_graphs,
                  .counts = call->counts, .factors = call->factors, .roots = {call->sources, call->targets},
                  .of_sources = call->of_sources, .read = call->read};
}

EXPORTED i64 NAMED(bellnet_forward)(const i64 *given) {
    Call whole = NAMED(call)(given), *call = &whole;
    Walk walk = NAMED(walk)(call);
    const Program *program = walk.program;
    i64 n_graphs = call->n_graphs, n_threads = call->n_threads, places[program->n_levels + 1];
    i64 n_packed = rounded(NAMED(place_matrices)(&walk, 1, places)), room = rounded(NAMED(room_of_side)(&walk, 1));
    i64 n_matrices = rounded(program->n_matrices), n_biases = rounded(NAMED(count_biases)(program, walk.words));
    i64 memory = rounded(program->side[1].memory), own = n_threads > 1 ? rounded(program->side[0].memory) : 0;
    i64 each = memory + room, tables = NAMED(tables_of_side)(&walk, 1);
    i64 *all_tables = take_block(n_threads * tables * sizeof(i64) +
                                 (n_matrices + n_biases + n_packed + n_threads * (each + own)) * sizeof(REAL));
    if (!all_tables) return 1;
    REAL *matrices = (REAL *)(all_tables + n_threads * tables), *bias = matrices + n_matrices, *packed = bias + n_biases;
    REAL *parts = packed + n_packed, *owns = parts + n_threads * each;
    NAMED(gather)(&walk, call->weights, call->mean, matrices);
    walk.matrices = matrices;
    if (call->biases) {
        walk.bias = bias;
        for (i64 target = 0, at = 0; target < program->n_biases; at += walk.words[program->biases + target++])
            NAMED(copy_row)(bias + at, call->biases[target], walk.words[program->biases + target]);
    }
    NAMED(pack_matrices)(&walk, 1, places, packed);
    DO_IN_PARALLEL(n_threads, {
        Team alone = {0, 1};
        i64 n_alone = n_graphs / team.size * team.size, first, last = share(team, n_alone, &first);
        REAL *part = parts + team.number * each;
        i64 *own_tables = all_tables + team.number * tables;
        for (i64 graph = first; graph < last; graph++)
            NAMED(forward_graph)(&walk, graph, alone, packed, places, part, NULL, part + memory, own_tables);
        wait_for(team);
        for (i64 graph = n_alone; graph < n_graphs; graph++)
            NAMED(forward_graph)(&walk, graph, team, packed, places, parts, owns, part + memory, own_tables);
    })
    give_block(all_tables);
    return 0;
}

EXPORTED i64 NAMED(bellnet_backward)(const i64 *given) {
    Call whole = NAMED(call)(given), *call = &whole;
    Walk walk = NAMED(walk)(call);
    const Program *program = walk.program;
    const Level *levels = NAMED(levels)(&walk);
    const Bundle *sources = NAMED(bundles)(&walk, 0), *targets = NAMED(bundles)(&walk, 1);
    i64 n_graphs = call->n_graphs, n_threads = call->n_threads, n_paired = 0;
    i64 places[program->n_levels + 1], paired_places[program->n_levels + 1];
    for (i64 number = 0; number < program->n_levels; number++) {
        paired_places[number] = n_paired;
        i64 columns = targets[levels[number].bundle[1]].width;
        n_paired += sources[levels[number].bundle[0]].width * NAMED(padded)(levels[number].n_swaps * columns);
    }
    int to_values = call->of_sources != NULL;
    i64 n_biases = call->of_biases ? NAMED(count_biases)(program, walk.words) : 0;
    i64 n_packed = to_values ? rounded(NAMED(place_matrices)(&walk, 0, places)) : 0, n_matrices = rounded(program->n_matrices);
    i64 pulled = rounded(program->side[1].memory), memory = rounded(program->side[0].memory);
    i64 room = rounded(NAMED(room_of_side)(&walk, 0)), sums = rounded(n_paired + n_biases);
    i64 own = n_threads > 1 ? pulled : 0, each = pulled + memory + room + sums, tables = NAMED(tables_of_side)(&walk, 0);
    i64 *all_tables = take_block(n_threads * tables * sizeof(i64) +
                                 (n_matrices + n_packed + n_threads * (each + own)) * sizeof(REAL));
    if (!all_tables) return 1;
    REAL *matrices = (REAL *)(all_tables + n_threads * tables), *block = matrices + n_matrices;
    REAL *packed = to_values ? block : NULL, *parts = block + n_packed, *owns = parts + n_threads * each;
    int n_members = 1;
    if (to_values) {
        NAMED(gather)(&walk, call->weights, call->mean, matrices);
        walk.matrices = matrices;
        NAMED(pack_matrices)(&walk, 0, places, packed);
    }
    DO_IN_PARALLEL(n_threads, {
        Team alone = {0, 1};
        i64 n_alone = n_graphs / team.size * team.size, first, last = share(team, n_alone, &first);
        REAL *part = parts + team.number * each, *written = part + pulled, *rest = written + memory, *paired = rest + room;
        REAL *bias = n_biases ? paired + n_paired : NULL;
        i64 *own_tables = all_tables + team.number * tables;
        if (team.number == 0) n_members = team.size;
        memset(paired, 0, (n_paired + n_biases) * sizeof(REAL));
        for (i64 graph = first; graph < last; graph++)
            NAMED(backward_graph)(&walk, graph, alone, packed, places, part, written, NULL, rest, own_tables, paired,
                                  paired_places, bias);
        wait_for(team);
        for (i64 graph = n_alone; graph < n_graphs; graph++)
            NAMED(backward_graph)(&walk, graph, team, packed, places, parts, parts + pulled, owns, rest, own_tables, paired,
                                  paired_places, bias);
    })
    REAL *all_paired = parts + pulled + memory + room;
    for (int member = 1; member < n_members; member++)
        NAMED(add_row)(all_paired, all_paired + member * each, n_paired + n_biases);
    if (call->of_weights) {
        for (i64 number = 0; number < program->n_levels; number++) {
            const Level *level = levels + number;
            i64 rows = sources[level->bundle[0]].width, columns = targets[level->bundle[1]].width;
            i64 step = NAMED(padded)(level->n_swaps * columns);
            for (i64 swap = 0; swap < level->n_swaps; swap++)
                for (i64 row = 0; row < rows; row++)
                    NAMED(copy_row)(matrices + level->matrices + (swap * rows + row) * columns,
                                    all_paired + paired_places[number] + row * step + swap * columns, columns);
        }
        NAMED(scatter)(&walk, matrices, call->mean, call->of_weights);
    }
    if (n_biases)
        for (i64 target = 0, at = 0; target < program->n_biases; at += walk.words[program->biases + target++])
            NAMED(copy_row)(call->of_biases[target], all_paired + n_paired + at, walk.words[program->biases + target]);
    give_block(all_tables);
    return 0;
}

#undef Tree
#undef Mixing
#undef Walk
#undef Call
#undef Wide
#undef Half
#undef WIDE
#undef NAMED
#undef MOST_BYTES
#undef MOST_VECTORS
