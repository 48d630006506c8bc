/* The matrices of the levels from the weights, which are stored by basis map, and back. */

/* Copy all weights to their blocks of the matrices, or back; with `is_mean` divided by the number of terms. */
static void NAMED(copy_blocks)(const Program *program, REAL *const *weights, REAL *matrices, int is_mean, int is_back) {
    if (!is_back && program->has_gaps) memset(matrices, 0, program->n_matrix_values * sizeof(REAL));
    for (i64 number = 0; number < program->n_blocks; number++) {
        const Block *block = program->blocks + number;
        REAL factor = is_mean ? (REAL)1 / (REAL)block->n_terms : 1;
        for (i64 row = 0; row < block->n_rows; row++) {
            REAL *weight = weights[block->weight] + (block->map * block->n_rows + row) * block->n_columns;
            REAL *matrix = matrices + block->offset + row * block->stride;
            for (i64 column = 0; column < block->n_columns && !is_back; column++) matrix[column] = weight[column] * factor;
            for (i64 column = 0; column < block->n_columns && is_back; column++) weight[column] = matrix[column] * factor;
        }
    }
}

/* Copy the biases of all outputs one after the other, or back. */
static void NAMED(copy_biases)(const Program *program, REAL *const *biases, REAL *all, int is_back) {
    for (i64 number = 0; number < program->n_biases; all += program->biases[number++].width) {
        const Bias *bias = program->biases + number;
        REAL *part = biases[bias->target] + bias->offset;
        NAMED(copy_row)(is_back ? part : all, is_back ? all : part, bias->width);
    }
}

static i64 NAMED(count_biases)(const Program *program) {
    i64 size = 0;
    for (i64 number = 0; number < program->n_biases; number++) size += program->biases[number].width;
    return size;
}

/* The widths of the stacks of a level. */
INLINE i64 NAMED(width_of)(const Program *program, const Level *level, int side) {
    return program->side[side].stacks[level->stack[side]].width;
}

/* Find where the packed matrices of each level begin, for finishing the stacks of one side; return their size. */
static i64 NAMED(find_offsets)(const Program *program, int side, i64 *offsets) {
    i64 size = 0;
    for (i64 number = 0; number < program->n_levels; number++) {
        const Level *level = program->levels + number;
        offsets[number] = size;
        size += level->n_permutations * NAMED(width_of)(program, level, !side) *
                NAMED(padded)(NAMED(width_of)(program, level, side));
    }
    return size;
}

static void NAMED(pack_matrices)(const Program *program, int side, const REAL *matrices, const i64 *offsets, REAL *packed) {
    for (i64 number = 0; number < program->n_levels; number++) {
        const Level *level = program->levels + number;
        i64 n_rows = NAMED(width_of)(program, level, 0), n_columns = NAMED(width_of)(program, level, 1);
        for (i64 one = 0; one < level->n_permutations; one++) {
            const REAL *matrix = matrices + level->offset + one * n_rows * n_columns;
            if (side == 1)
                NAMED(pack)(packed + offsets[number], level->n_permutations * n_rows, one * n_rows, matrix, n_rows, n_columns,
                            n_columns, 1);
            else
                NAMED(pack)(packed + offsets[number], level->n_permutations * n_columns, one * n_columns, matrix, n_columns,
                            n_rows, 1, n_columns);
        }
    }
}
