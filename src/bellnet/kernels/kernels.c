/* Kernels of bellnet: layers, normalisation, products and pooling on a CPU, in float32 and float64.
 *
 * They use neither Python nor torch. Every function takes a pointer to a struct with its arguments (structs.h) and
 * returns 0, or 1 if memory could not be allocated.
 */
#include "common.h"

/* A digest of the sources; see build_kernels.py. */
EXPORTED i64 bellnet_sources(void) { return BELLNET_SOURCES; }

/* The largest scratch block of a call since this was last called; for benchmarks. */
EXPORTED i64 bellnet_most_bytes(void) { return (i64)atomic_exchange(&most_bytes, 0); }

/* The variant that the processor can run: 2 for x86-64-v4, 1 for x86-64-v3, 0 for any. */
EXPORTED i64 bellnet_variant(void) {
#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 18) || (!defined(__clang__) && __GNUC__ >= 12))
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return 2;
    if (__builtin_cpu_supports("x86-64-v3")) return 1;
#endif
    return 0;
}

/* The sizes of all structs in the order of structs.h, which Python compares with its own; then 0. */
EXPORTED const i64 bellnet_sizes[] = {
    sizeof(Stack), sizeof(Step), sizeof(Level), sizeof(Side), sizeof(Block), sizeof(Bias), sizeof(Permutation),
    sizeof(Program), sizeof(Prefix), sizeof(Orbits), sizeof(RunCall), sizeof(ProductCall), sizeof(PoolCall),
    sizeof(NormCall), 0,
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
