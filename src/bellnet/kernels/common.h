/* Scratch memory, threads and the exported structs, shared by all kernels. */
#ifndef BELLNET_COMMON_H
#define BELLNET_COMMON_H

#include "structs.h"
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

_Static_assert(sizeof(void *) == sizeof(i64), "structs are declared for pointers of 64 bits");

#define BLOCK_ROWS 96 /* rows that are multiplied at a time; tiles have no more */
#define ALIGNMENT 64
#define EXPORTED __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))

#define JOINED_(one, other) one##_##other
#define JOINED(one, other) JOINED_(one, other)
#define NAMED(name) JOINED(name, TYPE)

/* The longest vectors of the processor, in bytes. */
#if defined(__AVX512F__)
#define MOST_BYTES 64
#elif defined(__AVX__)
#define MOST_BYTES 32
#else
#define MOST_BYTES 16
#endif

INLINE i64 least(i64 one, i64 other) { return one < other ? one : other; }
INLINE i64 most(i64 one, i64 other) { return one > other ? one : other; }

/* ---- rows of stacks */

/* Which rows of some stacks are not all zeros; marked where this saves many multiplications. */
typedef struct {
    char *rows;         /* NULL if no stack is marked */
    const i64 *offsets; /* of the marks of each stack; -1 for none */
} Marks;

/* The rows of a block that are multiplied. */
typedef struct {
    i64 n_rows, row[BLOCK_ROWS];
    int are_all;
} ActiveRows;

static void find_active(ActiveRows *active, i64 n_rows, const char *marks) {
    active->n_rows = 0;
    for (i64 row = 0; row < n_rows; row++)
        if (marks[row]) active->row[active->n_rows++] = row;
    active->are_all = active->n_rows == n_rows;
}

/* Neighbouring rows of a stack in all directions. */
typedef struct {
    i64 n_rows, sides[MOST_AXES];
    i64 index[BLOCK_ROWS][MOST_AXES];
    i64 own[BLOCK_ROWS]; /* rows of the stack, relative to the first of the tile */
    i64 *others;         /* the same for rows that each is computed from, BLOCK_ROWS for each table of strides */
} Tile;

/* ---- scratch memory: the last block that was released is reused, unless it is large */

#ifdef __SANITIZE_ADDRESS__
#define REUSED_BYTES ((size_t)0) /* so that the sanitizer sees a use after release */
#else
#define REUSED_BYTES ((size_t)1 << 27)
#endif

typedef struct {
    size_t size;
} BlockHead;

static _Atomic(BlockHead *) released_block;
static _Atomic size_t most_bytes; /* of a block, since this was last read */

static void *acquire_block(size_t size) {
    size_t most_before = atomic_load(&most_bytes);
    while (size > most_before && !atomic_compare_exchange_weak(&most_bytes, &most_before, size)) {
    }
    BlockHead *head = atomic_exchange(&released_block, NULL);
    if (head && head->size >= size) return (char *)head + ALIGNMENT;
    free(head);
    head = aligned_alloc(ALIGNMENT, (size + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!head) return NULL;
    head->size = size;
    return (char *)head + ALIGNMENT;
}

static void release_block(void *block) {
    BlockHead *head = (BlockHead *)((char *)block - ALIGNMENT);
    if (head->size <= REUSED_BYTES) head = atomic_exchange(&released_block, head);
    free(head);
}

static size_t rounded(size_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* ---- threads */

/* One of `size` threads that run a block of code. */
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

/* The part of `n_items` that a thread takes: from `first` to before the returned end. */
INLINE i64 share(Team team, i64 n_items, i64 *first) {
    *first = n_items * team.number / team.size;
    return n_items * (team.number + 1) / team.size;
}

/* How many graphs run at a time, each in memory of its own: one for each thread, or one by all of them. */
INLINE i64 count_areas(i64 n_graphs, i64 n_threads) { return n_graphs >= n_threads ? n_threads : 1; }

/* How many graphs are run by one thread each; the others are run by all threads together. */
INLINE i64 count_alone(i64 n_graphs, i64 n_areas, Team team) {
    return team.size <= n_areas ? n_graphs / team.size * team.size : 0;
}

/* Run a block of code by `n_threads` threads; `team` is the current one. */
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
