/* Kernels of bellnet: layers, what stands between them, products and pooling on a CPU, in single and double precision.
 *
 * Nothing here knows Python or torch: arguments are pointers, and whole numbers that say how a plan is walked through.
 */
#include "common.h"

/* Which sources this was made of; see sources.py. */
EXPORTED i64 bellnet_sources(void) { return BELLNET_SOURCES; }

/* The most memory that a call has taken for a moment, since this was last asked; for benchmarks. */
EXPORTED i64 bellnet_most_bytes(void) { return (i64)atomic_exchange(&most_bytes, 0); }

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
