// Rows of a matrix whose known pivots are cleared by one block for each row.
//
// A block works on LANES lanes at once. Its row lies in a tile, [column][lane], in shared memory
// where that suffices. Coefficients are [term][lane], so that a warp reads 32 words side by side.
//
// A row meets its pivots one after another, thousands of them, and most have about ten entries: time
// goes where a block waits, for memory and for its own warps.

#include "residues.cu"

#ifndef LANES
#define LANES 1
#endif

// Entries of a row that a thread takes at once.
#define AHEAD 4

// Pivots that are fetched together, while as many others are applied.
#define BATCH 2

// Columns with nothing to clear that a block passes one by one before it searches for the next.
#define PATIENCE 2

// Entries of a row that a warp takes side by side.
#define ENTRIES (32 / LANES)

#define WARP 0xffffffffu

// A stretch of a row: entries[entry + i] is the column of coefficient term + i.
struct __align__(16) Row {
    int entry;
    int length;
    int term;
    int unused;
};

// What one thread takes of a row: entries `first + k * ENTRIES`; a column is negative past the end.
struct Part {
    int columns[AHEAD];
    u32 coefficients[AHEAD];
};

// The first entry of this thread, of those that a block takes at once: AHEAD for each thread and lane.
__device__ __forceinline__ int first_entry()
{
    return (int)(threadIdx.x / 32 * (AHEAD * ENTRIES) + threadIdx.x % 32 / LANES);
}

__device__ __forceinline__ int entries_of_a_block() { return AHEAD * (int)blockDim.x / LANES; }

__device__ __forceinline__ Part part_of(const Row &row, int first, const int *entries,
                                        const u32 *coefficients)
{
    int thread = threadIdx.x % 32;
    const int *column = entries + (row.entry + first);
    const u32 *coefficient =
        coefficients + thread % LANES + (long long)(row.term + first) * LANES;
    Part part;
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
        part.columns[k] = -1;
        part.coefficients[k] = 0;
    }
    // Most rows are so short that all warps but one have nothing to fetch.
    if (first - thread / LANES < row.length)
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (first + k * ENTRIES < row.length) {
                part.columns[k] = column[k * ENTRIES];
                part.coefficients[k] = coefficient[k * 32];
            }
    return part;
}

// tile[columns] += m * coefficients, for the lane of this thread and the first `most` of a part. No
// two entries of a row are in one column, hence all that a thread reads is read before it writes.
__device__ __forceinline__ void add_part(u32 *tile, Factor m, const Part &part, int most, u32 p)
{
    u32 *words = tile + threadIdx.x % LANES, sums[AHEAD];
#pragma unroll
    for (int k = 0; k < most; k++)
        if (part.columns[k] >= 0)
            sums[k] = words[part.columns[k] * LANES];
#pragma unroll
    for (int k = 0; k < most; k++)
        if (part.columns[k] >= 0)
            words[part.columns[k] * LANES] = add_product(sums[k], m, part.coefficients[k], p);
}

// tile += m * row, from entry `first` of this thread on.
__device__ __forceinline__ void add_row(u32 *tile, Factor m, const Row &row, int first,
                                        const int *entries, const u32 *coefficients, u32 p)
{
    for (; first < row.length; first += entries_of_a_block())
        add_part(tile, m, part_of(row, first, entries, coefficients), AHEAD, p);
}

// The same for a whole row whose first part is here already.
__device__ __forceinline__ void add_fetched(u32 *tile, Factor m, const Row &row, const Part &part,
                                            const int *entries, const u32 *coefficients, u32 p)
{
    int first = first_entry(), step = entries_of_a_block();
    if (row.length <= ENTRIES) {
        add_part(tile, m, part, 1, p);
    } else if (row.length <= step) {
        add_part(tile, m, part, AHEAD, p);
    } else {
        Part second = part_of(row, first + step, entries, coefficients);
        Part third = part_of(row, first + 2 * step, entries, coefficients);
        add_part(tile, m, part, AHEAD, p);
        add_part(tile, m, second, AHEAD, p);
        add_part(tile, m, third, AHEAD, p);
        add_row(tile, m, row, first + 3 * step, entries, coefficients, p);
    }
}

// The first column from `column` on with a word that is not zero in some lane, or `end`; a warp
// looks at 32 words at a time. The same in every warp.
__device__ __forceinline__ int next_column(const u32 *tile, int column, int end)
{
    int thread = threadIdx.x % 32;
    while (column < end) {
        int word = column * LANES + thread;
        u32 found = __ballot_sync(WARP, word < end * LANES && tile[word] != 0);
        if (found)
            return column + (__ffs(found) - 1) / LANES;
        column += 32 / LANES;
    }
    return end;
}

// Reduce a row by all pivots, one after another; there are other blocks to compute meanwhile.
__device__ __forceinline__ void eliminate(u32 *tile, const Row *pivots, int npivots,
                                          const int *entries, const u32 *coefficients, Prime f)
{
    int column = next_column(tile, 0, npivots);
    while (column < npivots) {
        u32 value = tile[column * LANES + threadIdx.x % LANES];
        Row pivot = pivots[column];
        // Every warp has seen which column it is before any of them changes what comes after.
        __syncthreads();
        add_row(tile, negated(value, f), pivot, first_entry(), entries, coefficients, f.p);
        __syncthreads();
        column = next_column(tile, column + 1, npivots);
    }
}

// The pivots of 32 columns from `column` on, one in each thread of a warp.
__device__ __forceinline__ Row pivot_of(const Row *pivots, int column, int npivots)
{
    const Row *pivot = pivots + min(column + (int)threadIdx.x % 32, npivots - 1);
    return Row{pivot->entry, pivot->length, pivot->term, 0};
}

__device__ __forceinline__ Row of_thread(int thread, const Row &row)
{
    return Row{__shfl_sync(WARP, row.entry, thread), __shfl_sync(WARP, row.length, thread),
               __shfl_sync(WARP, row.term, thread), 0};
}

// Zero, when a part has arrived.
__device__ __forceinline__ int arrival(const Part &part) { return min(0, part.columns[0] + 1); }

// Clear `column` and those that follow it as long as most of them have something to clear. Returns
// where to search for the next.
//
// Pivots are on their way from memory before it is known that they are needed, as nearly all are. A
// thread that waits for one load waits for all that it has begun: so they come in batches, and no
// batch is begun before the last has arrived.
//
// One barrier for each pivot is enough, because pivots have entries behind their own column alone.
// What is in a column is final once the pivots before it are applied, and any warp may read it until
// the kernel ends; and of the words that a pivot changes, the last use was before the barrier.
__device__ __forceinline__ int clear_some(u32 *tile, int column, const Row *pivots, int npivots,
                                          const int *entries, const u32 *coefficients, Prime f)
{
    int first = first_entry(), start = column, fetched = BATCH, passed = 0;
    Row rows[2 * BATCH], ahead = pivot_of(pivots, start, npivots);
    Part parts[2 * BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
        rows[k] = of_thread(k, ahead);
        parts[k] = part_of(rows[k], first, entries, coefficients);
    }
    for (;;) {
#pragma unroll
        for (int k = 0; k < 2 * BATCH; k++, column++) {
            if (column == npivots)
                return column;
            u32 value = tile[column * LANES + threadIdx.x % LANES];
            if (k % BATCH == 0) {
                if (fetched % 32 == 0)
                    ahead = pivot_of(pivots, start + fetched, npivots);
                int thread = fetched % 32;
#pragma unroll
                for (int i = 0; i < BATCH; i++)
                    thread += arrival(parts[k + i]);
#pragma unroll
                for (int i = 0; i < BATCH; i++) {
                    int other = (k + BATCH + i) % (2 * BATCH);
                    rows[other] = of_thread(thread + i, ahead);
                    parts[other] = part_of(rows[other], first, entries, coefficients);
                }
                fetched += BATCH;
            }
            if (__any_sync(WARP, value != 0)) {
                if (first < rows[k].length)
                    add_fetched(tile, negated(value, f), rows[k], parts[k], entries, coefficients,
                                f.p);
                __syncthreads();
                passed = 0;
            } else if (++passed > PATIENCE) {
                return column + 1;
            }
        }
    }
}

// Reduce a row by all pivots, which are fetched ahead: for a tile in shared memory, of which a
// multiprocessor has room for few.
__device__ __forceinline__ void eliminate_ahead(u32 *tile, const Row *pivots, int npivots,
                                                const int *entries, const u32 *coefficients, Prime f)
{
    int column = next_column(tile, 0, npivots);
    while (column < npivots) {
        // Every warp has searched before any of them changes what comes after.
        __syncthreads();
        column = clear_some(tile, column, pivots, npivots, entries, coefficients, f);
        column = next_column(tile, column, npivots);
    }
}
