/* Kernels of bellnet: layers, normalisation, products and pooling on a CPU, in single and double precision.
 *
 * Nothing here knows Python or torch. Every function takes a pointer to a struct with its arguments (common.h) and
 * returns 0, or 1 if there was no memory.
 */
#include "common.h"

/* A number that identifies the sources; see build_kernels.py. */
EXPORTED i64 bellnet_sources(void) { return BELLNET_SOURCES; }

/* The largest scratch buffer of a call since this was last called; for benchmarks. */
EXPORTED i64 bellnet_most_bytes(void) { return (i64)atomic_exchange(&most_bytes, 0); }

/* Which variant the processor can run: 2 for x86-64-v4, 1 for x86-64-v3, 0 for any. */
EXPORTED i64 bellnet_variant(void) {
#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 18) || (!defined(__clang__) && __GNUC__ >= 12))
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return 2;
    if (__builtin_cpu_supports("x86-64-v3")) return 1;
#endif
    return 0;
}

typedef struct {
    const char *name;
    i64 value;
} Entry;

#define CONSTANT(name) {#name, name}
#define SIZE(type) {#type, sizeof(type)}
#define FIELD(type, field) {#type "." #field, offsetof(type, field)}

/* The layout of all structs that a caller fills in; Python compares it with its own when it loads the library. */
EXPORTED const Entry bellnet_layout[] = {
    CONSTANT(MOST_AXES), CONSTANT(MOST_SETS), CONSTANT(SUM), CONSTANT(DIAGONAL), CONSTANT(COPY),
    CONSTANT(LARGEST), CONSTANT(TOTAL), CONSTANT(MEAN),
    SIZE(Bundle), FIELD(Bundle, rank), FIELD(Bundle, width), FIELD(Bundle, rows), FIELD(Bundle, place),
    FIELD(Bundle, factors), FIELD(Bundle, first_branch), FIELD(Bundle, n_branches), FIELD(Bundle, level),
    FIELD(Bundle, length), FIELD(Bundle, set), FIELD(Bundle, stride), FIELD(Bundle, row_factors),
    FIELD(Bundle, n_row_factors), FIELD(Bundle, factor_width),
    SIZE(Branch), FIELD(Branch, child), FIELD(Branch, kind), FIELD(Branch, stays), FIELD(Branch, goes),
    FIELD(Branch, column), FIELD(Branch, child_column), FIELD(Branch, width), FIELD(Branch, step),
    FIELD(Branch, whole), FIELD(Branch, order), FIELD(Branch, bounds),
    SIZE(Level), FIELD(Level, bundle), FIELD(Level, n_swaps), FIELD(Level, first_swap), FIELD(Level, matrices),
    SIZE(Side), FIELD(Side, n_roots), FIELD(Side, n_bundles), FIELD(Side, memory), FIELD(Side, bundles),
    FIELD(Side, branches),
    SIZE(Block), FIELD(Block, weight), FIELD(Block, map), FIELD(Block, rows), FIELD(Block, columns),
    FIELD(Block, place), FIELD(Block, step), FIELD(Block, n_terms),
    SIZE(Bias), FIELD(Bias, target), FIELD(Bias, place), FIELD(Bias, width),
    SIZE(Swap), FIELD(Swap, n_axes), FIELD(Swap, found),
    SIZE(Program), FIELD(Program, side), FIELD(Program, n_levels), FIELD(Program, n_sets), FIELD(Program, n_factors),
    FIELD(Program, is_listed), FIELD(Program, n_matrices), FIELD(Program, n_blocks), FIELD(Program, has_gaps),
    FIELD(Program, n_biases), FIELD(Program, levels), FIELD(Program, swaps), FIELD(Program, blocks),
    FIELD(Program, biases),
    SIZE(Prefix), FIELD(Prefix, n_blocks), FIELD(Prefix, axis), FIELD(Prefix, child),
    SIZE(Orbits), FIELD(Orbits, n_axes), FIELD(Orbits, n_orbits), FIELD(Orbits, length), FIELD(Orbits, set),
    FIELD(Orbits, prefixes),
    SIZE(RunCall), FIELD(RunCall, program), FIELD(RunCall, n_graphs), FIELD(RunCall, n_threads), FIELD(RunCall, mean),
    FIELD(RunCall, counts), FIELD(RunCall, factors), FIELD(RunCall, read), FIELD(RunCall, sources),
    FIELD(RunCall, targets), FIELD(RunCall, weights), FIELD(RunCall, biases), FIELD(RunCall, of_weights),
    FIELD(RunCall, of_biases), FIELD(RunCall, of_sources),
    SIZE(ContractCall), FIELD(ContractCall, tables), FIELD(ContractCall, n_graphs), FIELD(ContractCall, n_channels),
    FIELD(ContractCall, n_threads), FIELD(ContractCall, x), FIELD(ContractCall, y), FIELD(ContractCall, result),
    FIELD(ContractCall, factor),
    SIZE(PoolCall), FIELD(PoolCall, orbits), FIELD(PoolCall, n_graphs), FIELD(PoolCall, n_threads),
    FIELD(PoolCall, channels), FIELD(PoolCall, reduce), FIELD(PoolCall, counts), FIELD(PoolCall, rows),
    FIELD(PoolCall, pooled), FIELD(PoolCall, divisors), FIELD(PoolCall, gradient), FIELD(PoolCall, of_rows),
    SIZE(BetweenCall), FIELD(BetweenCall, n_rows), FIELD(BetweenCall, channels), FIELD(BetweenCall, n_threads),
    FIELD(BetweenCall, graphs), FIELD(BetweenCall, rows), FIELD(BetweenCall, factor), FIELD(BetweenCall, shift),
    FIELD(BetweenCall, kept), FIELD(BetweenCall, before), FIELD(BetweenCall, gradient), FIELD(BetweenCall, mean),
    FIELD(BetweenCall, slope), FIELD(BetweenCall, offset), FIELD(BetweenCall, result), FIELD(BetweenCall, sums),
    FIELD(BetweenCall, products),
    {NULL, 0},
};

#define REAL float
#define TYPE f32
#include "typed.h"
#undef REAL
#undef TYPE

#define REAL double
#define TYPE f64
#include "typed.h"
#undef REAL
#undef TYPE
