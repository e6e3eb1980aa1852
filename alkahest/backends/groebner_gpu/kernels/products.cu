// Products of dense matrices by integers, and, included by tensor.cu, on tensor cores. The number
// of a block says which tile it computes, and along z for which lane.

#include "residues.cu"
#include "dense.cu"

#ifdef TENSOR_CORES
#include "fragments.cu"
#define MULTIPLY multiply_by_fragments
#define FORM(kernel) kernel##_tensor
#else
#define MULTIPLY multiply
#define FORM(kernel) kernel
#endif

#ifndef LANES
#define LANES 1
#endif

// The product of the inverses with the dense rows, whose entries become the terms of the round.
extern "C" __global__ void FORM(combine)(const u32 *inverses, const u32 *dense, int n, int width,
                                         const int *place, const u32 *field, int lanes,
                                         u32 *coefficients, int terms, u32 *bad)
{
    long long lane = blockIdx.z;
    u32 *known = coefficients + lane / LANES * terms * LANES + lane % LANES;
    MULTIPLY(matrix(inverses + lane * n * n, n, n), matrix(dense + lane * n * width, n, width),
             prime_of(field, lanes, lane), ToTerms{place, width, known, LANES, bad + lane});
}

// rows -= factors * others, where factors is nrows x n and others n x width; one lane.
extern "C" __global__ void FORM(subtract_product)(u32 *rows, int nrows, int width,
                                                  const u32 *factors, const u32 *others, int n,
                                                  const u32 *field)
{
    Prime f = prime_of(field, 1, 0);
    MULTIPLY(matrix(factors, nrows, n), matrix(others, n, width), f, FromRows{rows, width, f.p});
}

// The panel of the columns first .. first + count of squares of n rows, inverted by `invert_panel`,
// times the rows of these numbers as they were, which brings the other columns up to date.
extern "C" __global__ void FORM(update_squares)(u32 *squares, int n, int first, int count,
                                                const u32 *before, const u32 *field, int lanes)
{
    long long lane = blockIdx.z;
    Prime f = prime_of(field, lanes, lane);
    u32 *square = squares + lane * n * n;
    MULTIPLY(Matrix{square + first, n, count, n}, matrix(before + lane * count * n, count, n), f,
             IntoSquare{square, n, first, count, f.p});
}

// relations = known * inverses, where known is nrows x n; see ToRelations.
extern "C" __global__ void FORM(relate)(const u32 *known, int nrows, int n, const u32 *inverses,
                                        const int *smaller, const u32 *field, int lanes,
                                        u32 *relations, u32 *bad)
{
    long long lane = blockIdx.z, start = lane * nrows * n;
    MULTIPLY(matrix(known + start, nrows, n), matrix(inverses + lane * n * n, n, n),
             prime_of(field, lanes, lane),
             ToRelations{relations + start, n, smaller, bad + lane});
}

// A lane is bad unless relations * rows[first .. first + n] are the next nrelations rows.
extern "C" __global__ void FORM(compare)(const u32 *relations, int nrelations, int n,
                                         const u32 *rows, int nrows, int width, int first,
                                         const u32 *field, int lanes, u32 *bad)
{
    long long lane = blockIdx.z;
    const u32 *start = rows + (lane * nrows + first) * width;
    MULTIPLY(matrix(relations + lane * nrelations * n, nrelations, n), matrix(start, n, width),
             prime_of(field, lanes, lane),
             LikeRows{start + (long long)n * width, width, bad + lane});
}
