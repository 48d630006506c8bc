/* Finishing a bundle, upwards, when its children are: tile by tile of its rows.
 *
 * A tile is begun by what children hand on. Then the products of its level are added while it is in the cache: the rows
 * that each of its own is made of stand beside each other, one order of the axes after the other. Backwards those rows are
 * also paired with what was read, which gives the gradient of the matrices.
 */
#define Mixing NAMED(Mixing)

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

/* The rows that a tile is made of, beside each other for every swap; but those that are all zeros are left out. */
static __attribute__((noinline)) void NAMED(gather_marked)(REAL *gathered, i64 step, const REAL *given, i64 width, i64 n_swaps,
                                                           const i64 *starts, const Tile *tile, const char *marks, Kept *kept) {
    char have[BLOCK_ROWS] = {0};
    for (i64 swap = 0; swap < n_swaps; swap++)
        for (i64 row = 0; row < tile->n_rows; row++) have[row] |= marks[starts[swap] + tile->places[swap * BLOCK_ROWS + row]];
    keep_rows(kept, tile->n_rows, have);
    for (i64 one = 0; one < kept->n_rows; one++)
        for (i64 swap = 0; swap < n_swaps; swap++) {
            i64 place = starts[swap] + tile->places[swap * BLOCK_ROWS + kept->row[one]];
            REAL *to = gathered + one * step + swap * width;
            if (marks[place])
                NAMED(copy_row)(to, given + place * width, width);
            else
                NAMED(clear_row)(to, width);
        }
}

/* Add the products of rows to where pointers say, or write them there. */
static void NAMED(multiply_kept)(const Kept *kept, const REAL *rows, i64 step, i64 height, const REAL *packed, i64 width,
                                 REAL *const *pointers, int is_first) {
    REAL *into[BLOCK_ROWS];
    for (i64 one = 0; one < kept->n_rows && !kept->are_all; one++) into[one] = pointers[kept->row[one]];
    NAMED(multiply)(rows, step, kept->n_rows, height, packed, width, kept->are_all ? pointers : into, is_first);
}

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
    const char *marks = mixing ? NAMED(marks_of)(mixing->given, mixing->bundle) : NULL;
    const i64 *steps[n_steps + 1];
    Kept kept;
    i64 starts[n_swaps + 1]; /* of the tile, in the rows that it is made of */
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
            const i64 *places = tile->places + swap * BLOCK_ROWS;
            i64 from = 0;
            for (i64 axis = 0; axis < rank; axis++) from += origin[axis] * steps[swap][axis];
            starts[swap] = from;
            for (i64 row = 0; row < n_rows && !marks; row++)
                NAMED(copy_row)(gathered + row * step + swap * given_width, given + (from + places[row]) * given_width, given_width);
        }
        kept.n_rows = n_rows, kept.are_all = 1;
        if (marks) NAMED(gather_marked)(gathered, step, given, given_width, n_swaps, starts, tile, marks, &kept);
        if (read && kept.n_rows) {
            for (i64 row = 0; row < kept.n_rows; row++) {
                i64 place = start + tile->own[kept.are_all ? row : kept.row[row]];
                for (i64 column = height; column < step; column++) gathered[row * step + column] = 0;
                NAMED(copy_row)(left + row * width, read + place * width, width);
            }
            NAMED(pair)(left, width, width, gathered, step, NAMED(lanes)(height), kept.n_rows, mixing->paired);
        }
        if (!tree) continue;
        for (i64 row = 0; row < n_rows; row++) pointers[row] = own + (start + tile->own[row]) * width;
        const REAL *packed = mixing ? mixing->packed : NULL;
        int are_begun = 0;
        if (packed && is_scaled) {
            for (i64 row = 0; row < n_rows && !kept.are_all; row++) NAMED(clear_row)(pointers[row], width);
            NAMED(multiply_kept)(&kept, gathered, step, height, packed, width, pointers, kept.are_all);
            for (i64 row = 0; row < n_rows; row++)
                for (i64 column = 0; column < width; column++) pointers[row][column] *= factors[bundle->factors + column];
            packed = NULL;
            are_begun = 1;
        }
        if (mixing && mixing->bias) {
            for (i64 row = 0; row < n_rows; row++) NAMED(copy_row)(pointers[row], mixing->bias, width);
            are_begun = 1;
        }
        if (bundle->n_branches || !packed || !kept.are_all) {
            NAMED(begin_rows)(tree, bundle, tile, tile->places + n_swaps * BLOCK_ROWS, origin, pointers, are_begun);
            are_begun = 1;
        }
        if (packed) NAMED(multiply_kept)(&kept, gathered, step, height, packed, width, pointers, !are_begun);
    }
}
