// The kernels of products.cu on tensor cores, under names that end in _tensor.

#define TENSOR_CORES
#include "products.cu"
