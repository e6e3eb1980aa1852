// A round of a recorded run for many primes at once: rows are reduced; then the square of their
// leads is inverted (inverse.cu), and the product with it gives the new terms (products.cu).
//
// Lanes are primes. LANES of them form a group that one block works on; coefficients are stored
// [group][term][lane of the group]. All lanes of a warp follow the same record. What a prime does
// shows only in its own words: where the record does not fit it, its word in `bad` is set, and its
// numbers mean nothing from there on.

#include "elimination.cu"

// Reduce one row for one group of lanes: block `row + group * nrows`.
//
// The columns without a known pivot go to dense[lane][row][column], or, where `place` is given,
// to the terms that it names, as in `combine`.
__device__ __forceinline__ void reduce_row(
    u32 *tile, bool is_shared, const Row *pivots, int npivots, const Row *rows, int nrows,
    const int *entries, int columns, u32 *coefficients, int terms, const u32 *field, int lanes,
    u32 *dense, const int *place, u32 *bad)
{
    int group = blockIdx.x / nrows, number = blockIdx.x % nrows;
    int lane = threadIdx.x % LANES, mine = group * LANES + lane, width = columns - npivots;
    Prime f = prime_of(field, lanes, mine);
    u32 *known = coefficients + (long long)group * terms * LANES;
    for (int i = threadIdx.x; i < columns * LANES; i += blockDim.x)
        tile[i] = 0;
    __syncthreads();
    Row row = rows[number];
    for (int i = threadIdx.x / LANES; i < row.length; i += blockDim.x / LANES)
        tile[entries[row.entry + i] * LANES + lane] = known[(long long)(row.term + i) * LANES + lane];
    __syncthreads();
    if (is_shared)
        eliminate_ahead(tile, pivots, npivots, entries, known, f);
    else
        eliminate(tile, pivots, npivots, entries, known, f);
    for (int i = threadIdx.x / LANES; i < width; i += blockDim.x / LANES) {
        u32 value = tile[(npivots + i) * LANES + lane];
        if (!place) {
            dense[((long long)mine * nrows + number) * width + i] = value;
            continue;
        }
        int term = place[(long long)number * width + i];
        if (term >= 0)
            known[(long long)term * LANES + lane] = value;
        else if (value)
            bad[mine] = 1;
    }
}

// The same, for rounds whose columns fit into the shared memory of a block ...
extern "C" __global__ void reduce_rows(
    const Row *pivots, int npivots, const Row *rows, int nrows, const int *entries, int columns,
    u32 *coefficients, int terms, const u32 *field, int lanes, u32 *dense, const int *place,
    u32 *bad)
{
    extern __shared__ u32 tile[];
    reduce_row(tile, true, pivots, npivots, rows, nrows, entries, columns, coefficients, terms,
               field, lanes, dense, place, bad);
}

// ... and for those that need `tiles` in global memory, `columns * LANES` words a block.
extern "C" __global__ void reduce_long_rows(
    const Row *pivots, int npivots, const Row *rows, int nrows, const int *entries, int columns,
    u32 *coefficients, int terms, const u32 *field, int lanes, u32 *dense, const int *place,
    u32 *bad, u32 *tiles)
{
    u32 *tile = tiles + (long long)blockIdx.x * columns * LANES;
    reduce_row(tile, false, pivots, npivots, rows, nrows, entries, columns, coefficients, terms,
               field, lanes, dense, place, bad);
}

// The terms from `first` on as [term][lane].
extern "C" __global__ void collect_terms(const u32 *coefficients, int terms, int first, int lanes,
                                         u32 *collected)
{
    long long count = (long long)(terms - first) * lanes;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        int lane = (int)(i % lanes);
        long long term = (long long)(lane / LANES) * terms + first + i / lanes;
        collected[i] = coefficients[term * LANES + lane % LANES];
    }
}
