// A round of a run modulo one prime: rows, or random combinations of rows, are reduced by the known
// pivots, and what is left is brought to reduced echelon form.

#include "elimination.cu"
#include "random.cu"

// Multiplier of a row in a combination.
__device__ __forceinline__ u32 weight(u64 seed, u64 number, u32 p)
{
    return (u32)(random_word(seed, number) % p);
}

// dense[b] = the combination of number first + b of all rows, reduced.
__device__ __forceinline__ void reduce_mixture(
    u32 *tile, bool is_shared, const Row *pivots, int npivots, const Row *rows, int nrows,
    const int *entries, int columns, const u32 *coefficients, const u32 *field, int seed_low,
    int seed_high, int first, u32 *dense)
{
    Prime f = prime_of(field, 1, 0);
    u64 seed = (u64)(u32)seed_high << 32 | (u32)seed_low;
    u64 number = (u64)(first + blockIdx.x) * nrows;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        tile[i] = 0;
    __syncthreads();
    for (int i = 0; i < nrows; i++) {
        Factor m = factor(weight(seed, number + i, f.p), f);
        add_row(tile, m, rows[i], first_entry(), entries, coefficients, f.p);
        __syncthreads();
    }
    if (is_shared)
        eliminate_ahead(tile, pivots, npivots, entries, coefficients, f);
    else
        eliminate(tile, pivots, npivots, entries, coefficients, f);
    int width = columns - npivots;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        dense[(long long)blockIdx.x * width + i] = tile[npivots + i];
}

// For rounds whose columns fit into the shared memory of a block ...
extern "C" __global__ void reduce_mixtures(
    const Row *pivots, int npivots, const Row *rows, int nrows, const int *entries, int columns,
    const u32 *coefficients, const u32 *field, int seed_low, int seed_high, int first, u32 *dense)
{
    extern __shared__ u32 tile[];
    reduce_mixture(tile, true, pivots, npivots, rows, nrows, entries, columns, coefficients, field,
                   seed_low, seed_high, first, dense);
}

// ... and for those that need `tiles` in global memory, `columns` words a block.
extern "C" __global__ void reduce_long_mixtures(
    const Row *pivots, int npivots, const Row *rows, int nrows, const int *entries, int columns,
    const u32 *coefficients, const u32 *field, int seed_low, int seed_high, int first, u32 *dense,
    u32 *tiles)
{
    u32 *tile = tiles + (long long)blockIdx.x * columns;
    reduce_mixture(tile, false, pivots, npivots, rows, nrows, entries, columns, coefficients, field,
                   seed_low, seed_high, first, dense);
}

// factors[i][j] = rows[i][leads[j]], or 0 where the lead is negative; block i.
extern "C" __global__ void gather_leads(const u32 *rows, int width, const int *leads, int n,
                                        u32 *factors)
{
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        factors[(long long)blockIdx.x * n + j] =
            leads[j] >= 0 ? rows[(long long)blockIdx.x * width + leads[j]] : 0;
}

// Scale row `chosen` to begin with a one, note where that is, and take the column out: one block.
//
// leads[chosen] is the column, or -1 for a row of zeros; factors[i] = rows[i][column], but 0 for
// the row itself and for a row of zeros.
extern "C" __global__ void enter_row(u32 *rows, int nrows, int width, int chosen,
                                     const u32 *field, int *leads, u32 *factors)
{
    __shared__ u32 first, scale;
    Prime f = prime_of(field, 1, 0);
    u32 *row = rows + (long long)chosen * width;
    if (threadIdx.x == 0)
        first = width;
    __syncthreads();
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        if (row[i]) {
            atomicMin(&first, (u32)i);
            break;
        }
    __syncthreads();
    int lead = (int)first < width ? (int)first : -1;
    if (threadIdx.x == 0) {
        leads[chosen] = lead;
        scale = lead < 0 ? 0 : inverted(row[lead], f);
    }
    __syncthreads();
    Factor by = factor(scale, f);
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        row[i] = times(by, row[i], f.p);
    for (int i = threadIdx.x; i < nrows; i += blockDim.x)
        factors[i] = lead < 0 || i == chosen ? 0 : rows[(long long)i * width + lead];
}

// rows[i] -= factors[i] * rows[chosen]; block (stretch of columns, i).
extern "C" __global__ void clear_column(u32 *rows, int width, int chosen, const u32 *field,
                                        const u32 *factors)
{
    u32 value = factors[blockIdx.y];
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (!value || column >= width)
        return;
    Prime f = prime_of(field, 1, 0);
    u32 *at = rows + (long long)blockIdx.y * width + column;
    *at = add_product(*at, negated(value, f), rows[(long long)chosen * width + column], f.p);
}
