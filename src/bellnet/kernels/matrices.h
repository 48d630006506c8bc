/* Matrices: from the weights as they are stored, one for each map, to what levels multiply by, and back. */
#define Walk NAMED(Walk)

/* All that a call is given. */
typedef struct {
    const Program *program;
    i64 n_graphs;
    const i64 *counts;   /* (n_sets, n_graphs), or NULL */
    const REAL *factors; /* (n_graphs, n_factors), or NULL */
    REAL *const *roots[2], *const *of_sources;
    REAL *read; /* (n_graphs, memory of the source) */
    const REAL *matrices, *bias;
} Walk;

INLINE const Level *NAMED(levels)(const Walk *walk) { return walk->program->levels; }
INLINE const Bundle *NAMED(bundles)(const Walk *walk, int side) {
    return walk->program->side[side].bundles;
}

static Tree NAMED(tree)(const Walk *walk, int side, REAL *const *roots, REAL *memory, i64 graph, const i64 *limits) {
    const Side *one = walk->program->side + side;
    return (Tree){NAMED(bundles)(walk, side), one->branches, one->n_roots,
                  one->n_bundles, one->memory, roots, memory, graph, limits, {NULL, NULL}};
}

static const i64 *NAMED(limits)(const Walk *walk, i64 graph, i64 *limits) {
    if (!walk->counts) return NULL;
    for (i64 set = 0; set < walk->program->n_sets; set++) limits[set] = most(walk->counts[set * walk->n_graphs + graph], 0);
    return limits;
}

/* The matrices of all levels; with `mean` they also turn sums into means over all nodes. */
static void NAMED(gather)(const Walk *walk, const REAL *const *weights, int mean, REAL *matrices) {
    const Program *program = walk->program;
    const Block *blocks = program->blocks;
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
    const Block *blocks = program->blocks;
    for (i64 number = 0; number < program->n_blocks; number++) {
        const Block *block = blocks + number;
        REAL *weight = weights[block->weight] + block->map * block->rows * block->columns;
        REAL factor = mean ? (REAL)1 / (REAL)block->n_terms : 1;
        for (i64 row = 0; row < block->rows; row++)
            for (i64 column = 0; column < block->columns; column++)
                weight[row * block->columns + column] = matrices[block->place + row * block->step + column] * factor;
    }
}

static i64 NAMED(count_biases)(const Program *program) {
    i64 size = 0;
    const Bias *biases = program->biases;
    for (i64 number = 0; number < program->n_biases; number++) size += biases[number].width;
    return size;
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
