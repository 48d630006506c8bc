/* The forward and the backward pass of a plan, graph by graph; sparse rows are those of one graph.
 *
 * The source is contracted and the target finished; in the backward pass the two are exchanged.
 */
#define Run NAMED(Run)
#define Area NAMED(Area)

/* What is common to all graphs. */
typedef struct {
    const RunCall *call;
    const Program *program;
    const i64 *offsets;    /* of the packed matrices of each level */
    const REAL *packed;    /* NULL if only the gradients of the weights are computed */
    const REAL *bias;      /* or NULL */
    const i64 *grad_offsets;
} Run;

/* The memory of a thread. */
typedef struct {
    REAL *given;   /* contractions of the gradients */
    REAL *memory;  /* of the side that is finished */
    REAL *own;     /* for contractions by several threads */
    REAL *scratch;
    REAL *grad_matrices, *grad_bias;
    i64 *integers;
    Marks marks;
} Area;

/* Multiplications of a row that make it worth to test whether it is all zeros. */
#define MANY_MULTIPLICATIONS 4096

/* Find where the marks of all stacks of one side begin; return their size. */
static i64 NAMED(find_mark_offsets)(const Program *program, int side, i64 *offsets) {
    i64 size = 0;
    for (i64 number = 0; number < program->side[side].n_stacks; number++) {
        const Stack *stack = program->side[side].stacks + number;
        const Level *level = program->levels + stack->level;
        offsets[number] = -1;
        if (stack->level < 0) continue;
        if (stack->width * level->n_permutations * NAMED(width_of)(program, level, !side) < MANY_MULTIPLICATIONS) continue;
        offsets[number] = size;
        size += stack->n_rows;
    }
    return rounded(size);
}

/* The integers that a thread needs to finish the stacks of one side; `values` receives the number of its values. */
static i64 NAMED(find_scratch)(const Program *program, int side, i64 *values) {
    i64 size = 0;
    *values = 0;
    for (i64 number = 0; number < program->side[side].n_stacks; number++) {
        const Stack *stack = program->side[side].stacks + number;
        const Level *level = program->levels + stack->level;
        size = most(size, NAMED(tile_integers)(stack, stack->level < 0 ? 0 : level->n_permutations));
        if (stack->level < 0) continue;
        *values = most(*values, NAMED(scratch_values)(stack->width, NAMED(width_of)(program, level, !side), level->n_permutations));
    }
    *values = rounded(*values);
    return rounded(size);
}

static Tree NAMED(tree_of)(const Run *run, int side, void *const *roots, REAL *memory, i64 graph, const i64 *limits) {
    const Side *one = run->program->side + side;
    return (Tree){one->stacks, one->steps, one->n_roots, one->n_stacks, one->size, (REAL *const *)roots, memory, graph,
                  limits, {NULL, NULL}};
}

static const i64 *NAMED(limits_of)(const Run *run, i64 graph, i64 *limits) {
    const i64 *counts = run->call->counts;
    if (!counts) return NULL;
    for (i64 set = 0; set < run->program->n_sets; set++) limits[set] = most(counts[set * run->call->n_graphs + graph], 0);
    return limits;
}

/* All contractions of one side, and the marks of rows that are not all zeros. */
static void NAMED(contract_side)(const Run *run, const Tree *tree, const REAL *factors, Team team, REAL *own) {
    NAMED(mark_rows)(tree, 0, tree->n_roots, team);
    if (run->program->is_sparse)
        NAMED(contract_sparse)(tree, team);
    else
        NAMED(contract_dense)(tree, team, own);
    if (factors) {
        if (team.number == 0) NAMED(scale_dense)(tree, factors);
        wait_for(team);
    }
    NAMED(mark_rows)(tree, tree->n_roots, tree->n_stacks, team);
}

static void NAMED(run_graph)(const Run *run, i64 graph, int is_back, Team team, const Area *area) {
    i64 numbers[MOST_SETS];
    const RunCall *call = run->call;
    const Program *program = run->program;
    const i64 *limits = NAMED(limits_of)(run, graph, numbers);
    const REAL *factors = call->factors ? (const REAL *)call->factors + graph * program->n_factors : NULL;
    REAL *contractions = (REAL *)call->contractions + graph * program->side[0].size;
    Tree source = NAMED(tree_of)(run, 0, call->sources, contractions, graph, limits);
    Tree target = NAMED(tree_of)(run, 1, call->targets, is_back ? area->given : area->memory, graph, limits);
    Tree grad_source = NAMED(tree_of)(run, 0, call->grad_sources, area->memory, graph, limits);
    Tree *given = is_back ? &target : &source, *shape = is_back ? &source : &target;
    const Tree *into = !is_back ? &target : run->packed ? &grad_source : NULL;
    given->marks = area->marks;
    NAMED(contract_side)(run, given, is_back ? NULL : factors, team, area->own);
    if (area->grad_bias && team.number == 0) {
        i64 lowest = program->levels[0].stack[1];
        const Stack *stack = given->stacks + lowest;
        NAMED(add_sum)(area->grad_bias, NAMED(rows_of)(given, lowest), stack->width, NULL, 0, stack->n_rows, stack->width);
    }
    for (i64 number = shape->n_stacks - 1; number >= 0; number--) {
        i64 on = shape->stacks[number].level;
        if (on < 0 && !into) continue;
        Mixing mixing;
        if (on >= 0) {
            const Level *level = program->levels + on;
            const Permutation *permutations = program->permutations + level->first_permutation;
            mixing = (Mixing){given, level->stack[is_back], level->n_permutations,
                              permutations + (is_back ? 0 : level->n_permutations),
                              run->packed ? run->packed + run->offsets[on] : NULL, on == 0 ? run->bias : NULL,
                              is_back ? &source : NULL, is_back ? area->grad_matrices + run->grad_offsets[on] : NULL};
        }
        if (program->is_sparse)
            NAMED(finish_sparse)(into, shape, number, on >= 0 ? &mixing : NULL, is_back, team, area->scratch);
        else
            NAMED(finish_dense)(into, shape, number, on >= 0 ? &mixing : NULL, is_back ? factors : NULL, team, area->scratch,
                                area->integers);
        if (into) wait_for(team);
    }
    if (!into) wait_for(team);
}

/* Run all graphs: some by one thread each, in areas of their own, and the others by all threads in the first area. */
static void NAMED(run_graphs)(const Run *run, int is_back, Team team, Area area, i64 n_alone, i64 area_size, i64 n_marks) {
    Team alone = {0, 1};
    Area own = area;
    i64 first, last = share(team, n_alone, &first), place = n_alone ? team.number : 0;
    own.own = NULL;
    own.memory += place * area_size, own.given += place * area_size;
    if (n_marks) own.marks.rows += place * n_marks;
    for (i64 graph = first; graph < last; graph++) NAMED(run_graph)(run, graph, is_back, alone, &own);
    wait_for(team);
    for (i64 graph = n_alone; graph < run->call->n_graphs; graph++) NAMED(run_graph)(run, graph, is_back, team, &area);
}

static i64 NAMED(run)(const RunCall *call, int is_back) {
    const Program *program = call->program;
    int side = !is_back, given_side = is_back, is_packed = !is_back || call->grad_sources;
    i64 n_graphs = call->n_graphs, n_threads = call->n_threads, n_levels = program->n_levels;
    i64 offsets[n_levels + 1], grad_offsets[n_levels + 1], n_grads = 0, scratch;
    for (i64 number = 0; number < n_levels && is_back; number++) {
        const Level *level = program->levels + number;
        grad_offsets[number] = n_grads;
        n_grads += NAMED(width_of)(program, level, 0) *
                   NAMED(padded)(level->n_permutations * NAMED(width_of)(program, level, 1));
    }
    i64 n_biases = NAMED(count_biases)(program), n_grad_biases = call->grad_biases ? n_biases : 0;
    i64 mark_offsets[program->side[given_side].n_stacks];
    i64 n_marks = NAMED(find_mark_offsets)(program, given_side, mark_offsets);
    i64 n_integers = NAMED(find_scratch)(program, side, &scratch), n_matrices = rounded(program->n_matrix_values);
    i64 n_packed = is_packed ? rounded(NAMED(find_offsets)(program, side, offsets)) : 0, n_bias = is_back ? 0 : rounded(n_biases);
    i64 given_size = rounded(program->side[given_side].size), n_sums = rounded(n_grads + n_grad_biases);
    i64 area_size = rounded(program->side[side].size) + (is_back ? given_size : 0);
    i64 own_size = n_threads > 1 && !program->is_sparse ? given_size : 0, n_areas = count_areas(n_graphs, n_threads);
    i64 n_values = n_matrices + n_bias + n_packed + n_areas * area_size + n_threads * (scratch + own_size + n_sums);
    i64 *all_integers = acquire_block(n_threads * n_integers * sizeof(i64) + n_values * sizeof(REAL) + n_areas * n_marks);
    if (!all_integers) return 1;
    REAL *matrices = (REAL *)(all_integers + n_threads * n_integers), *bias = matrices + n_matrices;
    REAL *packed = bias + n_bias, *areas = packed + n_packed, *all_scratch = areas + n_areas * area_size;
    REAL *sums = all_scratch + n_threads * scratch, *owns = sums + n_threads * n_sums;
    char *all_marks = (char *)(owns + n_threads * own_size);
    if (is_packed) {
        NAMED(copy_blocks)(program, (REAL *const *)call->weights, matrices, call->is_mean, 0);
        NAMED(pack_matrices)(program, side, matrices, offsets, packed);
    }
    int has_bias = !is_back && call->biases;
    if (has_bias) NAMED(copy_biases)(program, (REAL *const *)call->biases, bias, 0);
    Run run = {call, program, offsets, is_packed ? packed : NULL, has_bias ? bias : NULL, grad_offsets};
    int n_members = 1;
    DO_IN_PARALLEL(n_threads, {
        REAL *own_sums = sums + team.number * n_sums;
        Area area = {areas, areas + (is_back ? given_size : 0), owns, all_scratch + team.number * scratch, own_sums,
                     n_grad_biases ? own_sums + n_grads : NULL, all_integers + team.number * n_integers,
                     {n_marks ? all_marks : NULL, mark_offsets}};
        if (team.number == 0) n_members = team.size;
        memset(own_sums, 0, n_sums * sizeof(REAL));
        NAMED(run_graphs)(&run, is_back, team, area, count_alone(n_graphs, n_areas, team), area_size, n_marks);
    })
    for (int member = 1; member < n_members && is_back; member++)
        NAMED(add_row)(sums, sums + member * n_sums, n_grads + n_grad_biases);
    if (call->grad_weights) {
        for (i64 number = 0; number < n_levels; number++) {
            const Level *level = program->levels + number;
            i64 n_rows = NAMED(width_of)(program, level, 0), n_columns = NAMED(width_of)(program, level, 1);
            i64 stride = NAMED(padded)(level->n_permutations * n_columns);
            for (i64 one = 0; one < level->n_permutations; one++)
                for (i64 row = 0; row < n_rows; row++)
                    NAMED(copy_row)(matrices + level->offset + (one * n_rows + row) * n_columns,
                                    sums + grad_offsets[number] + row * stride + one * n_columns, n_columns);
        }
        NAMED(copy_blocks)(program, (REAL *const *)call->grad_weights, matrices, call->is_mean, 1);
    }
    if (n_grad_biases) NAMED(copy_biases)(program, (REAL *const *)call->grad_biases, sums + n_grads, 1);
    release_block(all_integers);
    return 0;
}

EXPORTED i64 NAMED(bellnet_forward)(const RunCall *call) { return NAMED(run)(call, 0); }

EXPORTED i64 NAMED(bellnet_backward)(const RunCall *call) { return NAMED(run)(call, 1); }
