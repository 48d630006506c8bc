/* The structs that a caller fills in. structs.py reads their declarations from this file. */
#ifndef BELLNET_STRUCTS_H
#define BELLNET_STRUCTS_H

#include <stdint.h>

typedef int64_t i64;

#define MOST_AXES 12
#define MOST_SETS 64

enum { SUM, DIAGONAL, COPY };          /* the kinds of a step */
enum { POOL_MAX, POOL_SUM, POOL_MEAN }; /* the reductions of pooling */

/* Contractions of one rank side by side: a row of values for every tuple of nodes. */
typedef struct {
    i64 rank, width, n_rows;
    i64 offset;              /* in the memory of a graph; -1 - number for an input or output */
    i64 factor_offset;       /* of its factors among those of a graph; -1 for none */
    i64 first_step, n_steps; /* to its children */
    i64 level;               /* -1 for none */
    i64 length[MOST_AXES], set[MOST_AXES], stride[MOST_AXES];
    const void *row_factors; /* of sparse rows: (n_rows, n_row_factors) for factor_width columns each, or NULL */
    i64 n_row_factors, factor_width;
} Stack;

/* Columns of a child that are computed from columns of its parent. */
typedef struct {
    i64 child, kind, kept_axis, dropped_axis, column, child_column, width;
    i64 stride[MOST_AXES]; /* rows of the child from one index of a parent's axis to the next */
    /* Of sparse rows: for each row of the parent that of the child, or -1; NULL if they are the same. The rows of the
     * parent grouped by row of the child: their order, NULL for ascending, and where each group begins. */
    const i64 *segment, *order, *bounds;
} Step;

/* The stacks of source and target that are mixed at one rank. */
typedef struct {
    i64 stack[2];
    i64 n_permutations, first_permutation;
    i64 offset; /* of its matrices */
} Level;

/* All stacks of the inputs, or of the outputs; `size` values of a graph are not in inputs or outputs. */
typedef struct {
    i64 n_roots, n_stacks, size;
    const Stack *stacks;
    const Step *steps;
} Side;

/* The (n_rows, n_columns) weight of one basis map in the matrices, and the number of terms of the sums it multiplies. */
typedef struct {
    i64 weight, map, n_rows, n_columns;
    i64 offset, stride;
    i64 n_terms;
} Block;

/* A part of the bias of an output. */
typedef struct {
    i64 target, offset, width;
} Bias;

/* A permutation of the axes of a level. */
typedef struct {
    i64 stride[MOST_AXES];
    const i64 *rows; /* of sparse rows: for each the permuted one, or -1; NULL if they are the same */
} Permutation;

/* A plan for given channels and numbers of nodes, or for sparse rows. */
typedef struct {
    Side side[2];
    i64 n_levels, n_sets, n_factors, is_sparse;
    i64 n_matrix_values, n_blocks, has_gaps, n_biases;
    const Level *levels;
    const Permutation *permutations;
    const Block *blocks;
    const Bias *biases;
} Program;

/* Equalities among the first indices of a tuple, a node of the tree of equality patterns. */
typedef struct {
    i64 n_blocks;           /* distinct indices */
    i64 axis[MOST_AXES];    /* where each occurs first */
    i64 child[MOST_AXES + 1]; /* for the next index equal to one of them, or new: a longer prefix or an orbit; -1 for none */
} Prefix;

/* The orbits of a shape. */
typedef struct {
    i64 n_axes, n_orbits, length[MOST_AXES], set[MOST_AXES];
    const Prefix *prefixes; /* the first one is empty */
} Orbits;

/* ---- arguments of the exported functions */

/* Forward and backward pass of a plan; NULL for missing groups of tensors. */
typedef struct {
    const Program *program;
    i64 n_graphs, n_threads, is_mean;
    const i64 *counts;   /* (n_sets, n_graphs), or NULL */
    const void *factors; /* (n_graphs, n_factors), or NULL */
    void *contractions;  /* (n_graphs, size of the source), saved for backward */
    void *const *sources, *const *targets, *const *weights, *const *biases;
    void *const *grad_weights, *const *grad_biases, *const *grad_sources;
} RunCall;

/* Product of two tensors. */
typedef struct {
    const i64 *tables;
    i64 n_graphs, n_channels, n_threads;
    const void *x, *y;
    void *result;
    double factor;
} ProductCall;

/* Pooling and its gradient. */
typedef struct {
    const Orbits *orbits;
    i64 n_graphs, n_threads, n_channels, reduce;
    const i64 *counts; /* (n_sets, n_graphs), or NULL */
    const void *rows;
    void *pooled;   /* (n_graphs, n_orbits, n_channels) */
    void *divisors; /* of the gradient: the number of equal maxima, shaped as pooled; else (n_graphs, n_orbits) */
    const void *gradient;
    void *grad_rows;
} PoolCall;

/* Normalisation, ReLU, dropout and residual; each function uses some of these. */
typedef struct {
    i64 n_rows, n_channels, n_threads;
    const i64 *graphs; /* of each row, which selects the row of the mask; NULL for the first one */
    const void *rows, *factor, *shift, *mask, *residual, *gradient, *mean, *slope, *offset;
    void *result;
    double *sums, *products;
} NormCall;

#endif
