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

// target[i] = rows[numbers[i]]; block i.
extern "C" __global__ void gather_rows(const u32 *rows, int width, const int *numbers, u32 *target)
{
    const u32 *from = rows + (long long)numbers[blockIdx.x] * width;
    u32 *to = target + (long long)blockIdx.x * width;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        to[i] = from[i];
}

// values[i] = the number that `weight` gives for i; any grid.
extern "C" __global__ void fill_randomly(u32 *values, int count, const u32 *field, int seed_low,
                                         int seed_high)
{
    u32 p = prime_of(field, 1, 0).p;
    u64 seed = (u64)(u32)seed_high << 32 | (u32)seed_low;
    long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (long long i = first; i < count; i += (long long)gridDim.x * blockDim.x)
        values[i] = weight(seed, i, p);
}

// The first column of a row with a word that is not zero, or `width`; all threads of a block.
__device__ __forceinline__ int first_nonzero(const u32 *row, int width)
{
    __shared__ u32 first;
    if (threadIdx.x == 0)
        first = width;
    __syncthreads();
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        if (row[i]) {
            atomicMin(&first, (u32)i);
            break;
        }
    __syncthreads();
    return (int)first;
}

// Take the first column of row `chosen` out of the other rows; block i does that for row i.
//
// leads[chosen] is that column, or -1 for a row of zeros. Rows are multiplied by the entry there
// instead of divided: `scale_rows` does that when all are entered.
extern "C" __global__ void enter_row(u32 *rows, int width, int chosen, const u32 *field, int *leads)
{
    const u32 *row = rows + (long long)chosen * width;
    u32 *mine = rows + (long long)blockIdx.x * width;
    int lead = first_nonzero(row, width);
    if ((int)blockIdx.x == chosen) {
        if (threadIdx.x == 0)
            leads[chosen] = lead < width ? lead : -1;
        return;
    }
    if (lead == width)
        return;
    u32 value = mine[lead];
    __syncthreads();
    if (!value)
        return;
    Prime f = prime_of(field, 1, 0);
    Factor by = negated(value, f), own = factor(row[lead], f);
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        mine[i] = add_product(times(own, mine[i], f.p), by, row[i], f.p);
}

// Divide rows by their entries in their leads; block i, and a negative lead leaves the row alone.
extern "C" __global__ void scale_rows(u32 *rows, int width, const u32 *field, const int *leads)
{
    __shared__ u32 scale;
    int lead = leads[blockIdx.x];
    if (lead < 0)
        return;
    Prime f = prime_of(field, 1, 0);
    u32 *row = rows + (long long)blockIdx.x * width;
    if (threadIdx.x == 0)
        scale = inverted(row[lead], f);
    __syncthreads();
    Factor by = factor(scale, f);
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        row[i] = times(by, row[i], f.p);
}
