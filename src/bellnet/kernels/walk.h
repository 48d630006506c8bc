/* Whole walks: a plan on dense tensors, forwards and backwards, graph by graph; on listed rows all graphs are one.
 *
 * The source is read, its levels are mixed and the target is finished; backwards it is the same with both exchanged.
 */
static i64 NAMED(tables_of_side)(const Walk *walk, int side) {
    i64 size = 0;
    const Bundle *bundles = NAMED(bundles)(walk, side);
    for (i64 number = 0; number < walk->program->side[side].n_bundles; number++) {
        i64 on = bundles[number].level;
        size = most(size, NAMED(tables)(bundles + number, on < 0 ? 0 : NAMED(levels)(walk)[on].n_swaps));
    }
    return rounded(size);
}

/* Multiplications of a row from which on it is worth to see whether it is all zeros. */
#define MANY_MULTIPLICATIONS 4096

/* Where the marks of all bundles of one side begin, and how many there are. */
static i64 NAMED(place_marks)(const Walk *walk, int side, i64 *places) {
    i64 size = 0;
    for (i64 number = 0; number < walk->program->side[side].n_bundles; number++) {
        const Bundle *bundle = NAMED(bundles)(walk, side) + number;
        const Level *level = NAMED(levels)(walk) + bundle->level;
        places[number] = -1;
        if (bundle->level < 0) continue;
        i64 n_columns = level->n_swaps * NAMED(bundles)(walk, !side)[level->bundle[!side]].width;
        if (bundle->width * n_columns < MANY_MULTIPLICATIONS) continue;
        places[number] = size;
        size += bundle->rows;
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
    return walk->program->swaps + level->first_swap + side * level->n_swaps;
}

/* All that levels multiply of one side, each row with a mark if it has something and that is worth a look. */
static void NAMED(read_side)(const Walk *walk, const Tree *tree, const REAL *factors, Team team, REAL *own) {
    NAMED(mark_rows)(tree, 0, tree->n_roots, team);
    if (walk->program->is_listed)
        NAMED(read_listed)(tree, team);
    else
        NAMED(read_tree)(tree, team, own);
    if (factors) {
        if (team.number == 0) NAMED(scale_tree)(tree, factors);
        wait_for(team);
    }
    NAMED(mark_rows)(tree, tree->n_roots, tree->n_bundles, team);
}

static void NAMED(forward_graph)(const Walk *walk, i64 graph, Team team, const REAL *packed, const i64 *places, Marks marks,
                                 REAL *memory, REAL *own, REAL *room, i64 *tables) {
    i64 numbers[MOST_SETS];
    const i64 *limits = NAMED(limits)(walk, graph, numbers);
    const REAL *factors = walk->factors ? walk->factors + graph * walk->program->n_factors : NULL;
    Tree source = NAMED(tree)(walk, 0, walk->roots[0], walk->read + graph * walk->program->side[0].memory, graph, limits);
    Tree target = NAMED(tree)(walk, 1, walk->roots[1], memory, graph, limits);
    source.marks = marks;
    NAMED(read_side)(walk, &source, factors, team, own);
    for (i64 number = target.n_bundles - 1; number >= 0; number--) {
        i64 on = target.bundles[number].level;
        Mixing mixing;
        if (on >= 0) {
            const Level *level = NAMED(levels)(walk) + on;
            mixing = (Mixing){&source, level->bundle[0], level->n_swaps, NAMED(strides)(walk, level, 1),
                              packed + places[on], on == 0 ? walk->bias : NULL, NULL, NULL};
        }
        if (walk->program->is_listed)
            NAMED(finish_listed)(&target, &target, number, on >= 0 ? &mixing : NULL, 0, team, room);
        else
            NAMED(finish)(&target, &target, number, on >= 0 ? &mixing : NULL, NULL, team, room, tables);
        wait_for(team);
    }
}

static void NAMED(backward_graph)(const Walk *walk, i64 graph, Team team, const REAL *packed, const i64 *places,
                                  Marks marks, REAL *pulled, REAL *memory, REAL *own, REAL *room, i64 *tables, REAL *paired,
                                  const i64 *paired_places, REAL *of_bias) {
    i64 numbers[MOST_SETS];
    const i64 *limits = NAMED(limits)(walk, graph, numbers);
    const REAL *factors = walk->factors ? walk->factors + graph * walk->program->n_factors : NULL;
    Tree given = NAMED(tree)(walk, 1, walk->roots[1], pulled, graph, limits);
    Tree read = NAMED(tree)(walk, 0, walk->roots[0], walk->read + graph * walk->program->side[0].memory, graph, limits);
    Tree into = NAMED(tree)(walk, 0, walk->of_sources, memory, graph, limits);
    given.marks = marks;
    NAMED(read_side)(walk, &given, NULL, team, own);
    if (of_bias && team.number == 0) {
        i64 lowest = NAMED(levels)(walk)[0].bundle[1];
        i64 width = given.bundles[lowest].width;
        for (i64 row = 0; row < given.bundles[lowest].rows; row++)
            NAMED(add_row)(of_bias, NAMED(rows_of)(&given, lowest) + row * width, width);
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
        if (walk->program->is_listed)
            NAMED(finish_listed)(packed ? &into : NULL, &read, number, on >= 0 ? &mixing : NULL, 1, team, room);
        else
            NAMED(finish)(packed ? &into : NULL, &read, number, on >= 0 ? &mixing : NULL, factors, team, room, tables);
        if (packed) wait_for(team);
    }
    wait_for(team);
}

/* ---- what is called from outside; the result is zero, or one if there was no memory */

static Walk NAMED(walk)(const RunCall *call) {
    return (Walk){.program = call->program, .n_graphs = call->n_graphs, .counts = call->counts,
                  .factors = call->factors, .read = call->read, .of_sources = (REAL *const *)call->of_sources,
                  .roots = {(REAL *const *)call->sources, (REAL *const *)call->targets}};
}

EXPORTED i64 NAMED(bellnet_forward)(const RunCall *call) {
    Walk walk = NAMED(walk)(call);
    const Program *program = walk.program;
    i64 n_graphs = call->n_graphs, n_threads = call->n_threads, places[program->n_levels + 1];
    i64 places_of_marks[program->side[0].n_bundles], n_marks = NAMED(place_marks)(&walk, 0, places_of_marks);
    i64 n_packed = rounded(NAMED(place_matrices)(&walk, 1, places)), room = rounded(NAMED(room_of_side)(&walk, 1));
    i64 n_matrices = rounded(program->n_matrices), n_biases = rounded(NAMED(count_biases)(program));
    i64 memory = rounded(program->side[1].memory), own = n_threads > 1 && !program->is_listed ? rounded(program->side[0].memory) : 0;
    i64 tables = NAMED(tables_of_side)(&walk, 1), n_areas = count_areas(n_graphs, n_threads);
    i64 *all_tables = take_block(n_threads * tables * sizeof(i64) +
                                 (n_matrices + n_biases + n_packed + n_areas * memory + n_threads * (room + own)) * sizeof(REAL) +
                                 n_areas * n_marks);
    if (!all_tables) return 1;
    REAL *matrices = (REAL *)(all_tables + n_threads * tables), *bias = matrices + n_matrices, *packed = bias + n_biases;
    REAL *areas = packed + n_packed, *rooms = areas + n_areas * memory, *owns = rooms + n_threads * room;
    char *all_marks = (char *)(owns + n_threads * own);
    NAMED(gather)(&walk, (const REAL *const *)call->weights, call->mean, matrices);
    walk.matrices = matrices;
    if (call->biases) {
        walk.bias = bias;
        const Bias *biases = program->biases;
        for (i64 number = 0, at = 0; number < program->n_biases; at += biases[number++].width)
            NAMED(copy_row)(bias + at, (const REAL *)call->biases[biases[number].target] + biases[number].place,
                            biases[number].width);
    }
    NAMED(pack_matrices)(&walk, 1, places, packed);
    DO_IN_PARALLEL(n_threads, {
        Team alone = {0, 1};
        i64 n_alone = count_alone(n_graphs, n_areas, team), first, last = share(team, n_alone, &first);
        REAL *own_room = rooms + team.number * room, *area = areas + (n_alone ? team.number * memory : 0);
        Marks shared = {n_marks ? all_marks : NULL, places_of_marks}, marks = shared;
        if (n_marks && n_alone) marks.rows += team.number * n_marks;
        i64 *own_tables = all_tables + team.number * tables;
        for (i64 graph = first; graph < last; graph++)
            NAMED(forward_graph)(&walk, graph, alone, packed, places, marks, area, NULL, own_room, own_tables);
        wait_for(team);
        for (i64 graph = n_alone; graph < n_graphs; graph++)
            NAMED(forward_graph)(&walk, graph, team, packed, places, shared, areas, owns, own_room, own_tables);
    })
    give_block(all_tables);
    return 0;
}

EXPORTED i64 NAMED(bellnet_backward)(const RunCall *call) {
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
    i64 places_of_marks[program->side[1].n_bundles], n_marks = NAMED(place_marks)(&walk, 1, places_of_marks);
    int to_values = call->of_sources != NULL;
    i64 n_biases = call->of_biases ? NAMED(count_biases)(program) : 0;
    i64 n_packed = to_values ? rounded(NAMED(place_matrices)(&walk, 0, places)) : 0, n_matrices = rounded(program->n_matrices);
    i64 pulled = rounded(program->side[1].memory), memory = rounded(program->side[0].memory);
    i64 room = rounded(NAMED(room_of_side)(&walk, 0)), sums = rounded(n_paired + n_biases);
    i64 own = n_threads > 1 && !program->is_listed ? pulled : 0, each = pulled + memory, n_areas = count_areas(n_graphs, n_threads);
    i64 tables = NAMED(tables_of_side)(&walk, 0);
    i64 *all_tables = take_block(n_threads * tables * sizeof(i64) +
                                 (n_matrices + n_packed + n_areas * each + n_threads * (room + sums + own)) * sizeof(REAL) +
                                 n_areas * n_marks);
    if (!all_tables) return 1;
    REAL *matrices = (REAL *)(all_tables + n_threads * tables), *block = matrices + n_matrices;
    REAL *packed = to_values ? block : NULL, *areas = block + n_packed, *rooms = areas + n_areas * each;
    REAL *all_paired = rooms + n_threads * room, *owns = all_paired + n_threads * sums;
    char *all_marks = (char *)(owns + n_threads * own);
    int n_members = 1;
    if (to_values) {
        NAMED(gather)(&walk, (const REAL *const *)call->weights, call->mean, matrices);
        walk.matrices = matrices;
        NAMED(pack_matrices)(&walk, 0, places, packed);
    }
    DO_IN_PARALLEL(n_threads, {
        Team alone = {0, 1};
        i64 n_alone = count_alone(n_graphs, n_areas, team), first, last = share(team, n_alone, &first);
        REAL *own_room = rooms + team.number * room, *area = areas + (n_alone ? team.number * each : 0);
        Marks shared = {n_marks ? all_marks : NULL, places_of_marks}, marks = shared;
        if (n_marks && n_alone) marks.rows += team.number * n_marks;
        REAL *paired = all_paired + team.number * sums, *bias = n_biases ? paired + n_paired : NULL;
        i64 *own_tables = all_tables + team.number * tables;
        if (team.number == 0) n_members = team.size;
        memset(paired, 0, (n_paired + n_biases) * sizeof(REAL));
        for (i64 graph = first; graph < last; graph++)
            NAMED(backward_graph)(&walk, graph, alone, packed, places, marks, area, area + pulled, NULL, own_room, own_tables,
                                  paired, paired_places, bias);
        wait_for(team);
        for (i64 graph = n_alone; graph < n_graphs; graph++)
            NAMED(backward_graph)(&walk, graph, team, packed, places, shared, areas, areas + pulled, owns, own_room, own_tables,
                                  paired, paired_places, bias);
    })
    for (int member = 1; member < n_members; member++)
        NAMED(add_row)(all_paired, all_paired + member * sums, n_paired + n_biases);
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
        NAMED(scatter)(&walk, matrices, call->mean, (REAL *const *)call->of_weights);
    }
    if (n_biases) {
        const Bias *biases = program->biases;
        for (i64 number = 0, at = 0; number < program->n_biases; at += biases[number++].width)
            NAMED(copy_row)((REAL *)call->of_biases[biases[number].target] + biases[number].place,
                            all_paired + n_paired + at, biases[number].width);
    }
    give_block(all_tables);
    return 0;
}
