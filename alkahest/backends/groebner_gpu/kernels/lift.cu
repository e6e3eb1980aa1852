// From residues to integers: numerators of all terms over the denominators of their polynomials.
//
// M is the product of n primes, c[i] = M / p[i], and t[i] a residue modulo p[i] times the factor of
// its polynomial, which is the denominator divided by c[i]. The numerator is the sum of t[i] * c[i]
// less the multiple of M that is nearest, the integer nearest to the sum of t[i] / p[i]. Sums are
// taken in digits of 24 bits held in 64-bit words, which n < 512 products do not fill.
//
// One thread does a term. What it keeps in between is [number][term], so that the accesses of a
// warp lie side by side.

#include "residues.cu"
#include "random.cu"

#define DIGIT_BITS 24
#define DIGIT_MASK ((1u << DIGIT_BITS) - 1)

#define DIGITS 8  // that a thread sums up at once; the number of digits is a multiple

#define MIXTURES 8  // random combinations of a polynomial, one for each byte of a random word
#define STRIPES 8   // terms that a block takes at once, and warps that then finish a mixture each

__device__ __forceinline__ long long first_item()
{
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ long long stride() { return (long long)gridDim.x * blockDim.x; }

// Some columns of residues: target[term][at + k] = source[term][columns[k]].
extern "C" __global__ void gather_lanes(const u32 *source, int lanes, const int *columns,
                                          int count, int terms, u32 *target, int width, int at)
{
    long long all = (long long)terms * count;
    for (long long i = first_item(); i < all; i += stride()) {
        long long term = i / count;
        int k = (int)(i % count);
        target[term * width + at + k] = source[term * lanes + columns[k]];
    }
}

// mixtures[k][m][lane] = sum of weight m times residue over the terms spans[k][0] .. spans[k][1].
//
// Block (k, lanes / 32) has 32 x STRIPES threads. Weights are bytes: short, so that the numerators
// of a mixture are hardly longer than those of the terms. A thread may add 2^25 products.
extern "C" __global__ void mix_terms(const u32 *residues, int lanes, const int *spans,
                                     const u32 *field, u32 *mixtures)
{
    __shared__ u32 parts[MIXTURES][STRIPES][32];
    int x = threadIdx.x, y = threadIdx.y, lane = blockIdx.y * 32 + x;
    const int *span = spans + 2 * (long long)blockIdx.x;
    u32 p = lane < lanes ? field[lane] : 1;
    u64 sums[MIXTURES] = {0};
    for (long long term = span[0] + y; term < span[1]; term += STRIPES) {
        u64 weights = random_word(0, term);
        u64 value = lane < lanes ? residues[term * lanes + lane] : 0;
#pragma unroll
        for (int m = 0; m < MIXTURES; m++)
            sums[m] += (weights >> (8 * m) & 255) * value;
    }
#pragma unroll
    for (int m = 0; m < MIXTURES; m++)
        parts[m][y][x] = (u32)(sums[m] % p);
    __syncthreads();
    if (lane >= lanes)
        return;
    u64 total = 0;
    for (int stripe = 0; stripe < STRIPES; stripe++)
        total += parts[y][stripe][x];
    mixtures[((long long)blockIdx.x * MIXTURES + y) * lanes + lane] = (u32)(total % p);
}

// The last polynomial that begins at a term or before it.
__device__ __forceinline__ int owner_of(const int *starts, int polynomials, long long term)
{
    int low = 0, high = polynomials;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (starts[middle] <= term)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// The polynomial of each term, scaled[i][term] = t[i], and the multiple of M to take away.
extern "C" __global__ void scale_terms(const u32 *residues, int width, const int *columns, int n,
                                       const int *starts, int polynomials, int terms,
                                       const u32 *factors, const u32 *field, u32 *owners,
                                       u32 *scaled, u32 *multiples)
{
    for (long long term = first_item(); term < terms; term += stride()) {
        int owner = owner_of(starts, polynomials, term);
        double multiple = 0;
        for (int i = 0; i < n; i++) {
            Prime f = prime_of(field, n, i);
            u32 t = residues[term * width + columns[i]];
            t = product(t, factors[(long long)owner * n + i], f);
            scaled[(long long)i * terms + term] = t;
            multiple += (double)t / f.p;
        }
        owners[term] = owner;
        multiples[term] = (u32)(multiple + 0.5);
    }
}

struct __align__(16) Digits {
    u32 of[4];
};

// limbs[word][term]: numerators in two's complement; `words` words hold M and a sign.
extern "C" __global__ void add_cofactors(const u32 *scaled, const u32 *multiples, int terms,
                                         const Digits *cofactors, const u32 *modulus, int n,
                                         int digits, int words, u32 *limbs)
{
    for (long long term = first_item(); term < terms; term += stride()) {
        u32 *limb = limbs + term;
        long long multiple = multiples[term], borrow = 0;
        u64 carry = 0, bits = 0;
        int filled = 0, word = 0;
        for (int first = 0; first < digits; first += DIGITS) {
            u64 sums[DIGITS] = {0};
            for (int i = 0; i < n; i++) {
                u64 t = scaled[(long long)i * terms + term];
                const Digits *at = cofactors + ((long long)i * digits + first) / 4;
                Digits low = at[0], high = at[1];
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    sums[k] += t * low.of[k];
                    sums[4 + k] += t * high.of[k];
                }
            }
#pragma unroll
            for (int k = 0; k < DIGITS; k++) {
                u64 sum = sums[k] + carry;
                carry = sum >> DIGIT_BITS;
                long long rest = (long long)(sum & DIGIT_MASK) + borrow;
                rest -= multiple * modulus[first + k];
                borrow = rest >> DIGIT_BITS;
                bits |= (u64)(rest & DIGIT_MASK) << filled;
                filled += DIGIT_BITS;
                if (filled >= 32) {
                    if (word < words)
                        limb[(long long)word * terms] = (u32)bits;
                    word++;
                    bits >>= 32;
                    filled -= 32;
                }
            }
        }
        // The last borrow is 0 or -1, all bits of the sign.
        bits |= (u64)borrow << filled;
        for (; word < words; word++) {
            limb[(long long)word * terms] = (u32)bits;
            bits = (u64)borrow;
        }
    }
}

// Absolute values of the numerators, their signs, the polynomials where one is too long or differs
// modulo a prime that was not used, and the most words that a numerator of the others has.
//
// A polynomial's terms come after `leads` free rows in `negative`, as in `collect_limbs`. The
// residues modulo the other prime are in a column of `residues`; `denominators` are modulo it too.
extern "C" __global__ void check_terms(u32 *limbs, int words, int terms, const u32 *owners,
                                       int most, const u32 *residues, int width, int column,
                                       const u32 *field, const u32 *denominators, int leads,
                                       u32 *negative, u32 *failed, u32 *used)
{
    u32 p = field[0];
    for (long long term = first_item(); term < terms; term += stride()) {
        u32 *limb = limbs + term, owner = owners[term];
        bool is_negative = limb[(long long)(words - 1) * terms] >> 31;
        u32 carry = 1;
        for (int word = 0; is_negative && word < words; word++) {
            u32 value = ~limb[(long long)word * terms] + carry;
            carry = carry && !value;
            limb[(long long)word * terms] = value;
        }
        int length = words;
        while (length && !limb[(long long)(length - 1) * terms])
            length--;
        int bits = length ? 32 * length - __clz(limb[(long long)(length - 1) * terms]) : 0;
        u64 value = 0;
        for (int word = length - 1; word >= 0; word--)
            value = (value << 32 | limb[(long long)word * terms]) % p;
        if (is_negative && value)
            value = p - value;
        negative[term + (long long)leads * (owner + 1)] = is_negative;
        if (bits > most || value != (u64)residues[term * width + column] * denominators[owner] % p)
            failed[owner] = 1;
        else if ((u32)length > *used)
            atomicMax(used, (u32)length);
    }
}

// The first `used` words of the absolute values as [row][word], each polynomial after free rows.
extern "C" __global__ void collect_limbs(const u32 *limbs, int terms, const u32 *owners, int leads,
                                         int used, u32 *collected)
{
    long long all = (long long)terms * used;
    for (long long i = first_item(); i < all; i += stride()) {
        long long term = i / used, row = term + (long long)leads * (owners[term] + 1);
        int word = (int)(i % used);
        collected[row * used + word] = limbs[(long long)word * terms + term];
    }
}
