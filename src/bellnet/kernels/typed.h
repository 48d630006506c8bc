/* All kernels for one type of numbers: REAL is the type, and TYPE stands at the end of names. */
#include "multiply.h"
#include "tree.h"
#include "finish.h"
#include "listed.h"
#include "matrices.h"
#include "walk.h"
#include "contract.h"
#include "pool.h"
#include "between.h"

#undef NAMED
#undef MOST_BYTES
#undef MOST_VECTORS
#undef Wide
#undef Half
#undef Words
#undef WIDE
#undef Tree
#undef Mixing
#undef Walk
