// Rows of residues for a change of order: those of leading monomials from the basis, and products
// of rows and variables. Rows are [lane][row][column].

#include "residues.cu"

#define CHUNK 256    // threads of a block, and hits that it looks at once
#define STRIPES 8    // rows that it reads side by side, 32 columns of each

// A number of some limbs modulo p, divided by 2^32 for each limb.
__device__ __forceinline__ u32 scaled_residue(const u32 *limbs, int nlimbs, int nterms, int term,
                                              Prime f)
{
    u32 value = 0;
    for (int i = 0; i < nlimbs; i++)
        value = reduced((u64)value + limbs[(long long)i * nterms + term], f);
    return value;
}

// Row row_of[e] = the tail of element e divided by minus its leading coefficient, where a row is
// wanted; block (e, lane). Limbs are [limb][term]. A lane in which a leading coefficient, which is
// positive, vanishes is bad. The rows are zero before.
extern "C" __global__ void enter_elements(const u32 *limbs, int nlimbs, const int *negative,
                                          int nterms, const int *offsets, const int *terms_at,
                                          const int *row_of, const u32 *field, int lanes,
                                          u32 *rows, int nrows, int width, u32 *bad)
{
    __shared__ u32 scale;
    long long lane = blockIdx.y;
    int first = offsets[blockIdx.x], end = offsets[blockIdx.x + 1], number = row_of[blockIdx.x];
    Prime f = prime_of(field, lanes, lane);
    if (threadIdx.x == 0) {
        u32 leading = scaled_residue(limbs, nlimbs, nterms, first, f);
        scale = inverted(leading, f);
        if (!leading)
            bad[lane] = 1;
    }
    __syncthreads();
    if (number < 0)
        return;
    Factor by = factor(scale, f);
    u32 *row = rows + (lane * nrows + number) * width;
    for (int i = first + 1 + threadIdx.x; i < end; i += blockDim.x) {
        u32 value = times(by, scaled_residue(limbs, nlimbs, nterms, i, f), f.p);
        row[terms_at[i]] = negative[i] || !value ? value : f.p - value;
    }
}

// Rows that are products: jobs are a row, a variable, and the row that is their product. A variable
// moves the column moved_from[variable][column] to this one, and others to the border: hits are
// pairs of such a column and the row that it becomes, those of a variable from first_hit[variable]
// on. Blocks of 32 x STRIPES threads, (stretch of columns, job, lane).
extern "C" __global__ void times_variables(u32 *rows, int nrows, int width, const int *jobs,
                                           const int *moved_from, const int *hits,
                                           const int *first_hit, const u32 *field, int lanes)
{
    __shared__ u32 factors[CHUNK], partial[STRIPES][32];
    __shared__ int numbers[CHUNK];
    long long lane = blockIdx.z;
    const int *job = jobs + 3 * blockIdx.y;
    int variable = job[1], end = first_hit[variable + 1];
    int column = blockIdx.x * 32 + threadIdx.x, thread = threadIdx.y * 32 + threadIdx.x;
    Prime f = prime_of(field, lanes, lane);
    u64 square = (u64)f.p * f.p, sum = 0;
    u32 *mine = rows + lane * nrows * width;
    const u32 *source = mine + (long long)job[0] * width;
    for (int hit = first_hit[variable]; hit < end; hit += CHUNK) {
        bool is_hit = hit + thread < end;
        factors[thread] = is_hit ? source[hits[2 * (hit + thread)]] : 0;
        numbers[thread] = is_hit ? hits[2 * (hit + thread) + 1] : 0;
        __syncthreads();
#pragma unroll 4
        for (int i = threadIdx.y; i < CHUNK; i += STRIPES) {
            // A row that is met with zero need not be there yet.
            u32 by = factors[i], value = 0;
            if (by && column < width)
                value = mine[(long long)numbers[i] * width + column];
            sum += (u64)by * value;  // below 2 p^2
            sum = min(sum, sum - square);
        }
        __syncthreads();
    }
    partial[threadIdx.y][threadIdx.x] = reduced(sum, f);
    __syncthreads();
    if (threadIdx.y || column >= width)
        return;
    u64 total = 0;
    for (int i = 0; i < STRIPES; i++)
        total += partial[i][threadIdx.x];
    u32 value = reduced((u64)remainder(total, f) * f.square, f);  // times 2^32
    int from = moved_from[variable * width + column];
    if (from >= 0)
        value = below(value + source[from], f.p);
    mine[(long long)job[2] * width + column] = value;
}
