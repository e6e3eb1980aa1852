// Products of dense matrices of residues, row by row in memory.

#define TILE 32
#define STRIPE 8  // rows of a tile that the threads of a block cover at once

// Entries of a tile of left * right, of which `remainder` gives the residues: the rows
// threadIdx.y + k * STRIPE and the column threadIdx.x of the tile that the block's number says.
//
// left is `rows` x `inner` and right `inner` x `columns`. Sums stay below 2 p^2 < 2^63, so that two
// products more fit into 64 bits.
__device__ __forceinline__ void multiply_tile(const u32 *left, int rows, int inner,
                                              const u32 *right, int columns, Prime f,
                                              u64 (&sums)[TILE / STRIPE])
{
    __shared__ u32 factors[TILE][TILE + 1], values[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * TILE + x, top = blockIdx.y * TILE;
    u64 twice = 2 * (u64)f.p * f.p;
#pragma unroll
    for (int k = 0; k < TILE / STRIPE; k++)
        sums[k] = 0;
    for (int first = 0; first < inner; first += TILE) {
#pragma unroll
        for (int i = y; i < TILE; i += STRIPE) {
            bool is_left = top + i < rows && first + x < inner;
            bool is_right = first + i < inner && column < columns;
            factors[i][x] = is_left ? left[(long long)(top + i) * inner + first + x] : 0;
            values[i][x] = is_right ? right[(long long)(first + i) * columns + column] : 0;
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
}

__device__ __forceinline__ u32 remainder(u64 sum, Prime f)
{
    return reduced((u64)reduced(sum, f) * f.square, f);
}
