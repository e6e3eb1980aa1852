// The k-th word of splitmix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014), for k from 0 on.
__device__ __forceinline__ u64 random_word(u64 seed, u64 number)
{
    u64 z = seed + (number + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
