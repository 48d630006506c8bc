/* What all kernels share: the structs that a caller fills in, scratch memory, and threads.
 *
 * `structs.py` declares the same structs for Python; the layout that kernels.c exports is compared with them when the
 * library is loaded.
 */
#ifndef BELLNET_COMMON_H
#define BELLNET_COMMON_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef int64_t i64;
_Static_assert(sizeof(void *) == sizeof(i64), "structs are declared for pointers of 64 bits");

#define MOST_AXES 12
#define MOST_SETS 64
#define BLOCK_ROWS 96 /* rows that are multiplied at a time; tiles have no more */
#define ALIGNMENT 64
#define EXPORTED __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))

#define JOINED_(one, other) one##_##other
#define JOINED(one, other) JOINED_(one, other)

/* Folds of one rank side by side, a row of numbers for every tuple of nodes. */
typedef struct {
    i64 rank, width, rows;
    i64 place;                     /* where it begins in the memory of a graph; -1 - number for a whole tensor */
    i64 factors;                   /* where its factors begin among those of a graph; -1 for none */
    i64 first_branch, n_branches;  /* its children */
    i64 level;                     /* -1 if it is on none */
    i64 length[MOST_AXES], set[MOST_AXES], stride[MOST_AXES];
    /* of stored rows: what each is multiplied by, so many numbers for a row, each for so many neighbouring columns */
    const void *row_factors; /* NULL for none */
    i64 n_row_factors, factor_width;
} Bundle;

enum { SUM, DIAGONAL, COPY };

/* Neighbouring columns of a bundle, and those of a child that come from them. */
typedef struct {
    i64 child, kind, stays, goes, column, child_column, width;
    i64 step[MOST_AXES]; /* by how many rows of the child an axis of the parent moves */
    /* of listed rows: for each of the parent that of the child, -1 for none, all together NULL if they are the same;
     * and those of the parent, NULL if they are all in order, that the ones of the child begin at */
    const i64 *whole, *order, *bounds;
} Branch;

typedef struct {
    i64 bundle[2]; /* of the source and of the target */
    i64 n_swaps, first_swap, matrices;
} Level;

typedef struct {
    i64 n_roots, n_bundles, memory;
    const Bundle *bundles;
    const Branch *branches;
} Side;

/* The weight of one map, (rows, columns) numbers, and where it stands in the matrices of its level. */
typedef struct {
    i64 weight, map, rows, columns;
    i64 place, step; /* its first number, and how many there are from one row to the next */
    i64 n_terms;     /* of every sum that it multiplies */
} Block;

/* Some neighbouring numbers of the bias of a target. */
typedef struct {
    i64 target, place, width;
} Bias;

typedef struct {
    i64 n_axes[MOST_AXES]; /* by how many rows an axis moves */
    const i64 *found;      /* of stored rows: where each is found, -1 for nowhere; NULL if they are the same */
} Swap;

/* A plan for so many channels and nodes, or stored rows. */
typedef struct {
    Side side[2];
    i64 n_levels, n_sets, n_factors, is_listed;
    i64 n_matrices, n_blocks, has_gaps; /* the numbers of all matrices, and what they are made of */
    i64 n_biases;                       /* what the lowest level adds, one after the other */
    const Level *levels;
    const Swap *swaps;
    const Block *blocks;
    const Bias *biases;
} Program;

/* Which of the first indices are equal, and what comes of it when the next index is one of them or another. */
typedef struct {
    i64 n_blocks;             /* how many different ones there are */
    i64 axis[MOST_AXES];      /* where each of them comes first */
    i64 child[MOST_AXES + 1]; /* a prefix that is longer by one, or an orbit; -1 for an index of another node set */
} Prefix;

typedef struct {
    i64 n_axes, n_orbits, length[MOST_AXES], set[MOST_AXES];
    const Prefix *prefixes; /* the first one is empty */
} Orbits;

enum { LARGEST, TOTAL, MEAN };

/* ---- the arguments of every exported function, which takes a pointer to one of these */

/* Layers; pointers to the numbers of every tensor, NULL for groups that are missing. */
typedef struct {
    const Program *program;
    i64 n_graphs, n_threads, mean;
    const i64 *counts;   /* (n_sets, n_graphs), or NULL */
    const void *factors; /* (n_graphs, n_factors), or NULL */
    void *read;          /* (n_graphs, memory of the source) */
    void *const *sources, *const *targets, *const *weights, *const *biases;
    void *const *of_weights, *const *of_biases, *const *of_sources;
} RunCall;

typedef struct {
    const i64 *tables;
    i64 n_graphs, n_channels, n_threads;
    const void *x, *y;
    void *result;
    double factor;
} ContractCall;

typedef struct {
    const Orbits *orbits;
    i64 n_graphs, n_threads, channels, reduce;
    const i64 *counts;
    const void *rows;
    void *pooled, *divisors;
    const void *gradient;
    void *of_rows;
} PoolCall;

/* Normalisation, ReLU, dropout and residual; each function uses some of these. */
typedef struct {
    i64 n_rows, channels, n_threads;
    const i64 *graphs;
    const void *rows, *factor, *shift, *kept, *before, *gradient, *mean, *slope, *offset;
    void *result;
    double *sums, *products;
} BetweenCall;

/* Neighbouring rows of a bundle in all directions. */
typedef struct {
    i64 n_rows, sides[MOST_AXES];
    i64 index[BLOCK_ROWS][MOST_AXES];
    i64 own[BLOCK_ROWS]; /* rows of the bundle, from the first one of the tile on */
    i64 *places;         /* the same for what each row is made of, a table of BLOCK_ROWS for each */
} Tile;

/* Which rows are not all zeros, of those bundles where that is worth a look. */
typedef struct {
    char *rows;        /* NULL if it is worth a look nowhere */
    const i64 *places; /* for every bundle where its own begin; -1 for none */
} Marks;

/* Which of the rows of a block are multiplied. */
typedef struct {
    i64 n_rows, row[BLOCK_ROWS];
    int are_all;
} Kept;

/* Those that have something. */
static void keep_rows(Kept *kept, i64 n_rows, const char *have) {
    kept->n_rows = 0;
    for (i64 row = 0; row < n_rows; row++)
        if (have[row]) kept->row[kept->n_rows++] = row;
    kept->are_all = kept->n_rows == n_rows;
}

/* ---- memory for a moment: the last block that was given back is kept, unless it is large */

#ifdef __SANITIZE_ADDRESS__
#define KEPT_BYTES ((size_t)0) /* so that the sanitizer sees what is used after it was given back */
#else
#define KEPT_BYTES ((size_t)1 << 27)
#endif

typedef struct {
    size_t size;
} BlockHead;

static _Atomic(BlockHead *) kept_block;
static _Atomic size_t most_bytes; /* of a block, since that was last asked for */

static void *take_block(size_t size) {
    size_t most_before = atomic_load(&most_bytes);
    while (size > most_before && !atomic_compare_exchange_weak(&most_bytes, &most_before, size)) {
    }
    BlockHead *head = atomic_exchange(&kept_block, NULL);
    if (head && head->size >= size) return (char *)head + ALIGNMENT;
    free(head);
    head = aligned_alloc(ALIGNMENT, (size + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!head) return NULL;
    head->size = size;
    return (char *)head + ALIGNMENT;
}

static void give_block(void *block) {
    BlockHead *head = (BlockHead *)((char *)block - ALIGNMENT);
    if (head->size <= KEPT_BYTES) head = atomic_exchange(&kept_block, head);
    free(head);
}

static size_t rounded(size_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

INLINE i64 least(i64 one, i64 other) { return one < other ? one : other; }
INLINE i64 most(i64 one, i64 other) { return one > other ? one : other; }

/* ---- threads that go through one graph together */

typedef struct {
    int number, size;
} Team;

static void wait_for(Team team) {
    if (team.size > 1) {
#ifdef _OPENMP
#pragma omp barrier
#endif
    }
}

/* The part of so many things that a member of a team takes: from `first` to before the end. */
INLINE i64 share(Team team, i64 n_things, i64 *first) {
    *first = n_things * team.number / team.size;
    return n_things * (team.number + 1) / team.size;
}

/* How many graphs are gone through at a time, each in memory of its own: one for each thread, or one by all of them. */
INLINE i64 count_areas(i64 n_graphs, i64 n_threads) { return n_graphs >= n_threads ? n_threads : 1; }

/* How many graphs the members of a team take alone; the others they go through together. */
INLINE i64 count_alone(i64 n_graphs, i64 n_areas, Team team) {
    return team.size <= n_areas ? n_graphs / team.size * team.size : 0;
}

/* A block of code run by so many threads, or by one where that is all there is; `team` is who runs it. */
#ifdef _OPENMP
#define DO_IN_PARALLEL(n_threads, ...)                                                    \
    if (n_threads > 1) {                                                                  \
        _Pragma("omp parallel num_threads(n_threads)") {                                  \
            Team team = {omp_get_thread_num(), omp_get_num_threads()};                    \
            __VA_ARGS__                                                                   \
        }                                                                                 \
    } else {                                                                              \
        Team team = {0, 1};                                                               \
        __VA_ARGS__                                                                       \
    }
#else
#define DO_IN_PARALLEL(n_threads, ...)                                                    \
    {                                                                                     \
        (void)(n_threads);                                                                \
        Team team = {0, 1};                                                               \
        __VA_ARGS__                                                                       \
    }
#endif

#endif
