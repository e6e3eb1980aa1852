// Products of dense matrices of residues, and what becomes of their entries.

// Rows of residues, `stride` words apart.
struct Matrix {
    const u32 *at;
    int rows;
    int columns;
    int stride;
};

__device__ __forceinline__ Matrix matrix(const u32 *at, int rows, int columns)
{
    return Matrix{at, rows, columns, columns};
}

__device__ __forceinline__ u32 entry(const Matrix &m, int row, int column)
{
    bool is_inside = row < m.rows && column < m.columns;
    return is_inside ? m.at[(long long)row * m.stride + column] : 0;
}

// Entries become the terms place[row][column] of a round, `spread` words apart; where that is
// negative they have to be zero, else the lane is bad.
struct ToTerms {
    const int *place;
    int width;
    u32 *terms;
    int spread;
    u32 *bad;
    __device__ __forceinline__ void operator()(int row, int column, u32 value) const
    {
        int term = place[(long long)row * width + column];
        if (term >= 0)
            terms[(long long)term * spread] = value;
        else if (value)
            *bad = 1;
    }
};

// Entries are subtracted from rows.
struct FromRows {
    u32 *rows;
    int width;
    u32 p;
    __device__ __forceinline__ void operator()(int row, int column, u32 value) const
    {
        u32 *at = rows + (long long)row * width + column;
        u32 rest = *at - value;
        *at = min(rest, rest + p);
    }
};

// Entries are added to a square, all but the columns first .. first + count; the rows of these
// numbers are overwritten instead.
struct IntoSquare {
    u32 *square;
    int n, first, count;
    u32 p;
    __device__ __forceinline__ void operator()(int row, int column, u32 value) const
    {
        if (column >= first && column < first + count)
            return;
        u32 *at = square + (long long)row * n + column;
        bool is_pivot = row >= first && row < first + count;
        *at = is_pivot ? value : below(*at + value, p);
    }
};

// Entries are stored; those from column smaller[row] on have to be zero, else the lane is bad.
struct ToRelations {
    u32 *relations;
    int width;
    const int *smaller;
    u32 *bad;
    __device__ __forceinline__ void operator()(int row, int column, u32 value) const
    {
        relations[(long long)row * width + column] = value;
        if (value && column >= smaller[row])
            *bad = 1;
    }
};

// Entries have to be those of rows, else the lane is bad.
struct LikeRows {
    const u32 *rows;
    int width;
    u32 *bad;
    __device__ __forceinline__ void operator()(int row, int column, u32 value) const
    {
        if (rows[(long long)row * width + column] != value)
            *bad = 1;
    }
};

#define TILE 32
#define STRIPE 8  // rows of a tile that the threads of a block cover at once

// The tile of left * right that the block's number says, in integers: TILE x STRIPE threads, each
// for the column threadIdx.x and the rows threadIdx.y + k * STRIPE of the tile.
//
// Sums stay below 2 p^2 < 2^63, so that two products more fit into 64 bits.
template <class Emit>
__device__ __forceinline__ void multiply(const Matrix left, const Matrix right, Prime f,
                                         const Emit emit)
{
    __shared__ u32 factors[TILE][TILE + 1], values[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * TILE + x, top = blockIdx.y * TILE;
    u64 twice = 2 * (u64)f.p * f.p;
    u64 sums[TILE / STRIPE];
#pragma unroll
    for (int k = 0; k < TILE / STRIPE; k++)
        sums[k] = 0;
    for (int first = 0; first < left.columns; first += TILE) {
#pragma unroll
        for (int i = y; i < TILE; i += STRIPE) {
            factors[i][x] = entry(left, top + i, first + x);
            values[i][x] = entry(right, first + i, column);
        }
        __syncthreads();
#pragma unroll 4
        for (int i = 0; i < TILE; i += 2)
#pragma unroll
            for (int k = 0; k < TILE / STRIPE; k++) {
                const u32 *row = factors[y + k * STRIPE];
                u64 sum = sums[k] + (u64)row[i] * values[i][x] + (u64)row[i + 1] * values[i + 1][x];
                sums[k] = min(sum, sum - twice);
            }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < TILE / STRIPE; k++) {
        int row = top + y + k * STRIPE;
        if (row < left.rows && column < right.columns)
            emit(row, column, remainder(sums[k], f));
    }
}
