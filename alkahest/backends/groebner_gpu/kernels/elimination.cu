// Rows of a matrix whose known pivots are cleared by one block for each row.
//
// A block works on LANES lanes at once. Its row lies in a tile, [column][lane], in shared memory
// where that suffices. Coefficients are [term][lane], so that a warp reads 32 words side by side.

#include "residues.cu"

#ifndef LANES
#define LANES 1
#endif

// Entries that a thread has on the way from memory at once.
#define AHEAD 4

// A stretch of a row: entries[entry + i] is the column of coefficient term + i.
struct __align__(16) Row {
    int entry;
    int length;
    int term;
    int unused;
};

// The first column from `column` on with a word that is not zero in some lane, or `end`; a warp
// looks at 32 words at a time. The same in every warp.
__device__ __forceinline__ int next_column(const u32 *tile, int column, int end)
{
    int thread = threadIdx.x % 32;
    while (column < end) {
        int word = column * LANES + thread;
        u32 found = __ballot_sync(0xffffffffu, word < end * LANES && tile[word] != 0);
        if (found)
            return column + (__ffs(found) - 1) / LANES;
        column += 32 / LANES;
    }
    return end;
}

// tile[columns] += m * coefficients, for the lane of this thread. No two entries of a row are in
// one column, hence all that a thread reads is read before it writes.
__device__ __forceinline__ void add_row(u32 *tile, Factor m, const Row &row, const int *entries,
                                        const u32 *coefficients, u32 p)
{
    int lane = threadIdx.x % LANES, step = blockDim.x / LANES;
    const int *column = entries + row.entry;
    const u32 *value = coefficients + (long long)row.term * LANES + lane;
    for (int i = threadIdx.x / LANES; i < row.length; i += AHEAD * step) {
        int word[AHEAD];
        u32 factors[AHEAD], sums[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            int at = i + k * step;
            word[k] = at < row.length ? column[at] * LANES + lane : -1;
            factors[k] = at < row.length ? value[(long long)at * LANES] : 0;
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            sums[k] = word[k] >= 0 ? tile[word[k]] : 0;
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (word[k] >= 0)
                tile[word[k]] = add_product(sums[k], m, factors[k], p);
    }
}

// Reduce a row that lies in the tile by all pivots.
__device__ __forceinline__ void eliminate(u32 *tile, const Row *pivots, int npivots,
                                          const int *entries, const u32 *coefficients, Prime f)
{
    int column = next_column(tile, 0, npivots);
    while (column < npivots) {
        u32 value = tile[column * LANES + threadIdx.x % LANES];
        Row pivot = pivots[column];
        // Every warp has seen which column it is before any of them changes what comes after.
        __syncthreads();
        add_row(tile, negated(value, f), pivot, entries, coefficients, f.p);
        __syncthreads();
        column = next_column(tile, column + 1, npivots);
    }
}
