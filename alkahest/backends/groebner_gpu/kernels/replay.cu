// A round of a recorded run for many primes at once: rows are reduced, the square of their leads is
// inverted, and the product with it gives the new terms.
//
// Lanes are primes. LANES of them form a group that one block works on; coefficients are stored
// [group][term][lane of the group]. All lanes of a warp follow the same record. What a prime does
// shows only in its own words: where the record does not fit it, its word in `bad` is set, and its
// numbers mean nothing from there on.

#include "elimination.cu"
#include "dense.cu"

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

// The inverse of the square of the leads, one block a lane, Gauss-Jordan with row exchanges.
//
// inverses[lane][i][k] with sum over i of inverses[k][i] * dense[i][leads[l]] = (k == l).
// A lane whose square has none is bad. Shared memory: 3 * n + 2 words.
extern "C" __global__ void invert_leads(const u32 *dense, int n, int width, const int *leads,
                                        const u32 *field, int lanes, u32 *inverses, u32 *bad)
{
    extern __shared__ u32 shared[];
    u32 *pivot_row = shared, *factors = shared + n, *exchanged = shared + 2 * n;
    u32 *chosen = shared + 3 * n, *scale = chosen + 1;
    int warp = threadIdx.x / 32, thread = threadIdx.x % 32, warps = blockDim.x / 32;
    Prime f = prime_of(field, lanes, blockIdx.x);
    const u32 *rows = dense + (long long)blockIdx.x * n * width;
    u32 *square = inverses + (long long)blockIdx.x * n * n;
    for (int i = warp; i < n; i += warps)
        for (int k = thread; k < n; k += 32)
            square[(long long)i * n + k] = rows[(long long)i * width + leads[k]];
    if (threadIdx.x == 0)
        *chosen = n;
    __syncthreads();
    for (int k = 0; k < n; k++) {
        for (int i = k + threadIdx.x; i < n; i += blockDim.x)
            if (square[(long long)i * n + k])
                atomicMin(chosen, (u32)i);
        __syncthreads();
        int found = *chosen;
        if (found == n) {
            if (threadIdx.x == 0)
                bad[blockIdx.x] = 1;
            return;
        }
        if (threadIdx.x == 0) {
            exchanged[k] = found;
            *scale = inverted(square[(long long)found * n + k], f);
        }
        __syncthreads();
        Factor by = factor(*scale, f);
        for (int j = threadIdx.x; j < n; j += blockDim.x) {
            u32 value = square[(long long)found * n + j];
            square[(long long)found * n + j] = square[(long long)k * n + j];
            value = j == k ? *scale : times(by, value, f.p);
            square[(long long)k * n + j] = value;
            pivot_row[j] = value;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            factors[i] = square[(long long)i * n + k];
        if (threadIdx.x == 0)
            *chosen = n;
        __syncthreads();
        for (int i = warp; i < n; i += warps) {
            if (i == k || !factors[i])
                continue;
            Factor m = negated(factors[i], f);
            for (int j = thread; j < n; j += 32) {
                u32 before = j == k ? 0 : square[(long long)i * n + j];
                square[(long long)i * n + j] = add_product(before, m, pivot_row[j], f.p);
            }
        }
        __syncthreads();
    }
    // Exchanged rows of a matrix are exchanged columns of its inverse, the last ones first.
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        for (int k = n - 1; k >= 0; k--) {
            u32 value = square[(long long)i * n + k];
            square[(long long)i * n + k] = square[(long long)i * n + exchanged[k]];
            square[(long long)i * n + exchanged[k]] = value;
        }
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

// The product of the inverses with the dense rows, whose entries become the terms of the round.
//
// A block of TILE x STRIPE threads computes a tile of one lane. An entry goes to the term
// place[row][column]; it must be zero where that is negative, else the lane is bad.
extern "C" __global__ void combine(const u32 *inverses, const u32 *dense, int n, int width,
                                   const int *place, const u32 *field, int lanes,
                                   u32 *coefficients, int terms, u32 *bad)
{
    int mine = blockIdx.z;
    Prime f = prime_of(field, lanes, mine);
    u32 *known = coefficients + (long long)(mine / LANES) * terms * LANES + mine % LANES;
    u64 sums[TILE / STRIPE];
    multiply_tile(inverses + (long long)mine * n * n, n, n, dense + (long long)mine * n * width,
                  width, f, sums);
#pragma unroll
    for (int k = 0; k < TILE / STRIPE; k++) {
        int row = blockIdx.y * TILE + threadIdx.y + k * STRIPE;
        int column = blockIdx.x * TILE + threadIdx.x;
        if (row >= n || column >= width)
            continue;
        u32 value = remainder(sums[k], f);
        int term = place[(long long)row * width + column];
        if (term >= 0)
            known[(long long)term * LANES] = value;
        else if (value)
            bad[mine] = 1;
    }
}
