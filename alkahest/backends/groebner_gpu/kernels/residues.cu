// Arithmetic modulo odd primes below 2^31; residues are 32-bit words below the prime.
//
// A product with a factor that is used many times takes three multiplications when the quotient
// floor(factor * 2^32 / prime) is known (V. Shoup's method, as in NTL); to find that quotient takes
// four, by one multiplication of P. L. Montgomery (Math. Comp. 44, 1985).

typedef unsigned int u32;
typedef unsigned long long u64;

// What a lane knows of its prime: rows 0, 1 and 2 of the array `field`, one column a lane.
struct Prime {
    u32 p;
    u32 inverse;  // of p modulo 2^32
    u32 square;   // 2^64 modulo p
};

__device__ __forceinline__ Prime prime_of(const u32 *field, int lanes, int lane)
{
    return Prime{field[lane], field[lanes + lane], field[2 * lanes + lane]};
}

// value - p where that is not negative: its wrapped difference is the greater word otherwise.
__device__ __forceinline__ u32 below(u32 value, u32 p) { return min(value, value - p); }

// t / 2^32 modulo p, for t below p * 2^32.
__device__ __forceinline__ u32 reduced(u64 t, Prime f)
{
    u32 high = (u32)(t >> 32);
    u32 rest = high - __umulhi((u32)t * f.inverse, f.p);
    return min(rest, rest + f.p);
}

// t modulo p, for t below p * 2^32.
__device__ __forceinline__ u32 remainder(u64 t, Prime f)
{
    return reduced((u64)reduced(t, f) * f.square, f);
}

__device__ __forceinline__ u32 product(u32 a, u32 b, Prime f)
{
    return remainder((u64)a * b, f);
}

// A residue to multiply by, with its quotient.
struct Factor {
    u32 value;
    u32 quotient;
};

__device__ __forceinline__ Factor factor(u32 value, Prime f)
{
    u32 rest = reduced((u64)value * f.square, f);  // value * 2^32 modulo p
    return Factor{value, 0u - rest * f.inverse};
}

__device__ __forceinline__ Factor negated(u32 value, Prime f)
{
    return factor(value ? f.p - value : 0, f);
}

__device__ __forceinline__ u32 times(Factor m, u32 value, u32 p)
{
    return below(m.value * value - __umulhi(m.quotient, value) * p, p);
}

__device__ __forceinline__ u32 add_product(u32 sum, Factor m, u32 value, u32 p)
{
    return below(sum + times(m, value, p), p);
}

// 1 / value by Fermat's theorem; 0 for 0.
__device__ __forceinline__ u32 inverted(u32 value, Prime f)
{
    u32 result = 1;
    for (u32 bits = f.p - 2; bits; bits >>= 1) {
        if (bits & 1)
            result = product(result, value, f);
        value = product(value, value, f);
    }
    return result;
}
