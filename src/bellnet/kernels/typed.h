/* All kernels for one dtype: REAL is its C type, and TYPE the end of all names. */
#include "matmul.h"
#include "contract.h"
#include "broadcast.h"
#include "sparse.h"
#include "level_matrices.h"
#include "execute.h"
#include "product.h"
#include "pooling.h"
#include "norm_relu.h"

#undef MOST_VECTORS
#undef Wide
#undef Half
#undef Words
#undef WIDE
#undef Tree
#undef Mixing
#undef Run
#undef Area
