/* Kernels of bellnet: dense layers and products on a CPU, for single and double precision.
 *
 * Every file below is compiled once for each type of numbers. Nothing here knows Python or torch: arguments are
 * pointers, and whole numbers that say how a plan is walked through.
 */
#include "common.h"

/* Which sources this was made of; see sources.py. */
EXPORTED i64 bellnet_sources(void) { return BELLNET_SOURCES; }

#define REAL float
#define TYPE f32
#include "multiply.h"
#include "walk.h"
#undef REAL
#undef TYPE

#define REAL double
#define TYPE f64
#include "multiply.h"
#include "walk.h"
#undef REAL
#undef TYPE
