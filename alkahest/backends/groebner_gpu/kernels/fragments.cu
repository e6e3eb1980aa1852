// Products of dense matrices of residues on tensor cores, in double precision and exactly.
//
// A residue below 2^31 is high * 2^16 + low, both in doubles. Three products give that of two
// residues (A. Karatsuba): low * low', high * high', and cross = (low + high)(low' + high'), where
// low * high' + high * low' = cross - low * low' - high * high'. All are integers. With low < 2^16
// and high < 2^15 the terms of cross are below 9 * 2^30, so that sums of 2^16 of them stay below
// 2^50 and doubles hold each of them exactly, in whatever order they are added. Nothing is reduced
// before the end; matrices with more than 2^16 terms to a sum are not multiplied here.

#define BLOCK_ROWS 64
#define BLOCK_COLUMNS 64
#define DEPTH 32         // terms of the sums that are in shared memory at once
#define THREADS 256      // of a block: two rows of four warps, each for 32 x 16 entries
#define LEFT_STRIDE 36   // words of a row in shared memory, such that the threads of a warp
#define RIGHT_STRIDE 72  // read from different banks

// c += a * b, for matrices of 16 x 8, 8 x 8 and 16 x 8 entries that the threads of a warp share.
// With g = thread / 4 and t = thread % 4: a[h + 2 * s] is entry (g + 8 * h, t + 4 * s), b[s] is
// entry (t + 4 * s, g), and c[e + 2 * h] is entry (g + 8 * h, 2 * t + e).
__device__ __forceinline__ void multiply_add(double (&c)[4], const double (&a)[4],
                                             const double (&b)[2])
{
#if !defined(__CUDA_ARCH__)
    fragments_on_host(c, a, b);
#elif __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(c[2 * h]), "+d"(c[2 * h + 1])
                : "d"(a[h + 2 * s]), "d"(b[s]));
#endif
}

// A word as a double: it is the low half of 2^52 + word.
__device__ __forceinline__ double exact(u32 word)
{
    return __hiloint2double(0x43300000, (int)word) - 4503599627370496.0;
}

__device__ __forceinline__ void split(u32 residue, double &low, double &high, double &sum)
{
    low = exact(residue & 0xffff);
    high = exact(residue >> 16);
    sum = low + high;
}

// The residue of low + (cross - low - high) * 2^16 + high * 2^32, from sums of at most 2^16 terms.
// These are below p * 2^32, as `reduced` wants them: those of low are below min(p, 2^16)^2, those
// of the middle below 2 p, and high is zero where p is below 2^16.
__device__ __forceinline__ u32 joined(double low, double cross, double high, Prime f)
{
    u64 first = (u64)low, last = (u64)high, middle = (u64)cross - first - last;
    u64 shifted = reduced(first, f) + ((u64)reduced(middle, f) << 16) + last;  // by 2^32
    return reduced((u64)remainder(shifted, f) * f.square, f);
}

// As `multiply`, with tiles of BLOCK_ROWS x BLOCK_COLUMNS and blocks of THREADS.
template <class Emit>
__device__ __forceinline__ void multiply_by_fragments(const Matrix left, const Matrix right,
                                                      Prime f, const Emit emit)
{
    __shared__ u32 factors[BLOCK_ROWS * LEFT_STRIDE], values[DEPTH * RIGHT_STRIDE];
    const int PARTS = 3, DOWN = 2, ACROSS = 2;  // fragments of a warp: 2 x 2 of 16 x 8 entries
    const int LEFT_STEP = THREADS / DEPTH, RIGHT_STEP = THREADS / BLOCK_COLUMNS;
    const int LEFT_WORDS = BLOCK_ROWS / LEFT_STEP, RIGHT_WORDS = DEPTH / RIGHT_STEP;
    int thread = threadIdx.x, warp = thread / 32, g = thread % 32 / 4, t = thread % 4;
    int top = blockIdx.y * BLOCK_ROWS, side = blockIdx.x * BLOCK_COLUMNS;
    int row = warp / 4 * 32 + g, column = warp % 4 * 16 + g;
    double sums[PARTS][DOWN][ACROSS][4];
#pragma unroll
    for (int i = 0; i < PARTS * DOWN * ACROSS * 4; i++)
        (&sums[0][0][0][0])[i] = 0.0;
    // What this thread brings from memory: next is on the way while the tiles are multiplied.
    int left_row = thread / DEPTH, left_term = thread % DEPTH;
    int right_term = thread / BLOCK_COLUMNS, right_column = thread % BLOCK_COLUMNS;
    u32 next_left[LEFT_WORDS], next_right[RIGHT_WORDS];
    auto fetch = [&](int first) {
#pragma unroll
        for (int i = 0; i < LEFT_WORDS; i++)
            next_left[i] = entry(left, top + left_row + i * LEFT_STEP, first + left_term);
#pragma unroll
        for (int i = 0; i < RIGHT_WORDS; i++)
            next_right[i] = entry(right, first + right_term + i * RIGHT_STEP, side + right_column);
    };
    fetch(0);
    for (int first = 0; first < left.columns; first += DEPTH) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < LEFT_WORDS; i++)
            factors[(left_row + i * LEFT_STEP) * LEFT_STRIDE + left_term] = next_left[i];
#pragma unroll
        for (int i = 0; i < RIGHT_WORDS; i++)
            values[(right_term + i * RIGHT_STEP) * RIGHT_STRIDE + right_column] = next_right[i];
        __syncthreads();
        fetch(first + DEPTH);
#pragma unroll 1
        for (int k = 0; k < DEPTH; k += 8) {
            double a[PARTS][DOWN][4], b[PARTS][ACROSS][2];
#pragma unroll
            for (int m = 0; m < DOWN; m++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int r = row + 16 * m + 8 * (i % 2), at = k + t + 4 * (i / 2);
                    split(factors[r * LEFT_STRIDE + at], a[0][m][i], a[1][m][i], a[2][m][i]);
                }
#pragma unroll
            for (int n = 0; n < ACROSS; n++)
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    int at = k + t + 4 * s;
                    split(values[at * RIGHT_STRIDE + column + 8 * n],
                          b[0][n][s], b[1][n][s], b[2][n][s]);
                }
#pragma unroll
            for (int part = 0; part < PARTS; part++)
#pragma unroll
                for (int m = 0; m < DOWN; m++)
#pragma unroll
                    for (int n = 0; n < ACROSS; n++)
                        multiply_add(sums[part][m][n], a[part][m], b[part][n]);
        }
    }
#pragma unroll
    for (int m = 0; m < DOWN; m++)
#pragma unroll
        for (int n = 0; n < ACROSS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int r = top + row + 16 * m + 8 * (i / 2);
                int c = side + warp % 4 * 16 + 8 * n + 2 * t + i % 2;
                if (r < left.rows && c < right.columns)
                    emit(r, c, joined(sums[0][m][n][i], sums[2][m][n][i], sums[1][m][n][i], f));
            }
}
