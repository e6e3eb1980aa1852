// Inverses of squares of residues, one for each lane, by Gauss-Jordan elimination in place: panel
// after panel of columns, with products in between; a small square is one panel.

#include "residues.cu"

// chosen[lane][i][k] = rows[lane][first + i][columns[k]]; block (row i, lane).
extern "C" __global__ void gather_columns(const u32 *rows, int nrows, int width, int first,
                                          const int *columns, int n, u32 *chosen)
{
    long long lane = blockIdx.y, i = blockIdx.x;
    const u32 *row = rows + (lane * nrows + first + i) * width;
    for (int k = threadIdx.x; k < n; k += blockDim.x)
        chosen[(lane * gridDim.x + i) * n + k] = row[columns[k]];
}

// The first step for a panel, the columns first .. first + count: eliminate them, in these columns
// alone; one block a lane. exchanged[lane][k] is the row that row k was exchanged with to get its
// pivot, which is the first from k on; a lane that has none is bad. Shared memory: count + n + 2
// words.
extern "C" __global__ void invert_panel(u32 *squares, int n, int first, int count,
                                        const u32 *field, int lanes, u32 *exchanged, u32 *bad)
{
    extern __shared__ u32 shared[];
    long long lane = blockIdx.x;
    Prime f = prime_of(field, lanes, lane);
    u32 *square = squares + lane * n * n;
    u32 *pivot_row = shared, *factors = shared + count;
    u32 *chosen = shared + count + n, *scale = chosen + 1;
    int warp = threadIdx.x / 32, thread = threadIdx.x % 32, warps = blockDim.x / 32;
    if (threadIdx.x == 0)
        *chosen = n;
    __syncthreads();
    for (int k = first; k < first + count; k++) {
        for (int i = k + threadIdx.x; i < n; i += blockDim.x)
            if (square[(long long)i * n + k])
                atomicMin(chosen, (u32)i);
        __syncthreads();
        int found = *chosen;
        if (found == n) {
            if (threadIdx.x == 0)
                bad[lane] = 1;
            return;
        }
        if (threadIdx.x == 0) {
            exchanged[lane * n + k] = found;
            *scale = inverted(square[(long long)found * n + k], f);
        }
        __syncthreads();
        Factor by = factor(*scale, f);
        for (int j = threadIdx.x; j < count; j += blockDim.x) {
            u32 *here = square + (long long)k * n + first + j;
            u32 *there = square + (long long)found * n + first + j;
            u32 value = *there;
            *there = *here;
            value = first + j == k ? *scale : times(by, value, f.p);
            *here = value;
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
            u32 *row = square + (long long)i * n + first;
            for (int j = thread; j < count; j += 32)
                row[j] = add_product(first + j == k ? 0 : row[j], m, pivot_row[j], f.p);
        }
        __syncthreads();
    }
}

// The second: exchange the same rows in the other columns; before[lane][k] is what row first + k
// then has there, and zeros in the panel. A thread for each column, block (stretch, lane).
extern "C" __global__ void exchange_rows(u32 *squares, int n, int first, int count,
                                         const u32 *exchanged, u32 *before, const u32 *bad)
{
    long long lane = blockIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= n)
        return;
    bool is_other = !bad[lane] && (column < first || column >= first + count);
    u32 *square = squares + lane * n * n + column;
    for (int k = 0; k < count; k++) {
        u32 value = 0;
        if (is_other) {
            u32 *here = square + (long long)(first + k) * n;
            u32 *there = square + (long long)exchanged[lane * n + first + k] * n;
            value = *there;
            *there = *here;
            *here = value;
        }
        before[(lane * count + k) * n + column] = value;
    }
}

// The last, after all panels, one block a lane: exchanged rows of a matrix are exchanged columns of
// its inverse, the last ones first.
extern "C" __global__ void restore_columns(u32 *squares, int n, const u32 *exchanged,
                                           const u32 *bad)
{
    long long lane = blockIdx.x;
    if (bad[lane])
        return;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        for (int k = n - 1; k >= 0; k--) {
            u32 *row = squares + (lane * n + i) * n, value = row[k];
            int other = exchanged[lane * n + k];
            row[k] = row[other];
            row[other] = value;
        }
}
