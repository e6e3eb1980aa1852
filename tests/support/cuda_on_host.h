/* Enough of CUDA C++ to run kernels on the host, each thread of a block as a coroutine.
 *
 * A thread runs until it waits for others, then the next one does; `order` says which is next. What
 * a kernel computes must not depend on it. A barrier that some threads never reach ends the process.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __align__(bytes) alignas(bytes)

struct dim3 {
    unsigned x, y, z;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;

template <class T> T min(T a, T b) { return b < a ? b : a; }

static uint32_t __umulhi(uint32_t a, uint32_t b) { return (uint64_t)a * b >> 32; }
static int __ffs(uint32_t bits) { return __builtin_ffs(bits); }
static int __clz(uint32_t bits) { return bits ? __builtin_clz(bits) : 32; }

static double __hiloint2double(int high, int low)
{
    uint64_t bits = (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t atomicMin(uint32_t *at, uint32_t value)
{
    uint32_t before = *at;
    *at = min(before, value);
    return before;
}

static uint32_t atomicMax(uint32_t *at, uint32_t value)
{
    uint32_t before = *at;
    *at = before < value ? value : before;
    return before;
}

namespace host {
constexpr size_t STACK = 1 << 16;
struct Barrier {
    unsigned arrived = 0, generation = 0;
};
static unsigned threads, running, idle;
static int order;
static ucontext_t scheduler;
static std::vector<ucontext_t> contexts;
static std::vector<char> done, stacks;
static std::vector<unsigned> votes;
struct Fragments {
    double a[4], b[2];
};
static std::vector<Fragments> fragments;
static std::vector<Barrier> warps;
static Barrier block;
static void (*body)(void *);
static void *argument;

static void pause() { swapcontext(&contexts[running], &scheduler); }

static void wait(Barrier &barrier, unsigned size)
{
    unsigned generation = barrier.generation;
    idle = 0;
    if (++barrier.arrived == size) {
        barrier.arrived = 0;
        barrier.generation++;
        return;
    }
    while (barrier.generation == generation)
        pause();
}

static unsigned warp_size(unsigned warp) { return min(32u, threads - 32 * warp); }

static void enter()
{
    body(argument);
    done[running] = 1;
    idle = 0;
    pause();
}

static void run_block()
{
    for (unsigned t = 0; t < threads; t++) {
        getcontext(&contexts[t]);
        contexts[t].uc_stack.ss_sp = &stacks[t * STACK];
        contexts[t].uc_stack.ss_size = STACK;
        contexts[t].uc_link = nullptr;
        makecontext(&contexts[t], enter, 0);
        done[t] = 0;
    }
    block = Barrier{};
    warps.assign((threads + 31) / 32, Barrier{});
    for (unsigned left = threads; left;) {
        for (unsigned k = 0; k < threads; k++) {
            running = order ? threads - 1 - k : k;
            if (done[running])
                continue;
            threadIdx = {running % blockDim.x, running / blockDim.x, 0};
            swapcontext(&scheduler, &contexts[running]);
            left -= done[running];
        }
        if (left && ++idle > 2) {
            fprintf(stderr, "threads wait for one another for ever\n");
            abort();
        }
    }
}

static void launch(void (*what)(void *), void *with, const unsigned *shape, int backward)
{
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    gridDim = {shape[0], shape[1], shape[2]};
    blockDim = {shape[3], shape[4], 1};
    threads = shape[3] * shape[4];
    order = backward;
    body = what;
    argument = with;
    contexts.resize(threads);
    done.resize(threads);
    stacks.resize(threads * STACK);
    votes.resize(threads);
    fragments.resize(threads);
    for (unsigned z = 0; z < gridDim.z; z++)
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x; x++) {
                blockIdx = {x, y, z};
                run_block();
            }
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void **values, std::index_sequence<I...>)
{
    kernel(*(A *)values[I]...);
}

template <class... A> struct Call {
    void (*kernel)(A...);
    void **values;
    static void go(void *self)
    {
        Call *call = (Call *)self;
        host::call(call->kernel, call->values, std::index_sequence_for<A...>{});
    }
};

template <class... A>
void start(void (*kernel)(A...), const unsigned *shape, int backward, void **values)
{
    Call<A...> call{kernel, values};
    launch(Call<A...>::go, &call, shape, backward);
}
} // namespace host

static void __syncthreads() { host::wait(host::block, host::threads); }

static uint32_t __ballot_sync(uint32_t, bool vote)
{
    unsigned warp = host::running / 32, size = host::warp_size(warp), bits = 0;
    host::votes[host::running] = vote;
    host::wait(host::warps[warp], size);
    for (unsigned t = 0; t < size; t++)
        bits |= host::votes[32 * warp + t] << t;
    host::wait(host::warps[warp], size);
    return bits;
}

static bool __any_sync(uint32_t all, bool vote) { return __ballot_sync(all, vote) != 0; }

static int __shfl_sync(uint32_t, int value, int from)
{
    unsigned warp = host::running / 32, size = host::warp_size(warp);
    host::votes[host::running] = value;
    host::wait(host::warps[warp], size);
    int found = host::votes[32 * warp + from];
    host::wait(host::warps[warp], size);
    return found;
}

/* c += a * b for the fragments of a warp, which lie as fragments.cu says. */
static void fragments_on_host(double (&c)[4], const double (&a)[4], const double (&b)[2])
{
    unsigned warp = host::running / 32, g = host::running % 32 / 4, t = host::running % 4;
    auto &mine = host::fragments[host::running];
    memcpy(mine.a, a, sizeof a);
    memcpy(mine.b, b, sizeof b);
    host::wait(host::warps[warp], 32);
    for (unsigned e = 0; e < 2; e++)
        for (unsigned h = 0; h < 2; h++)
            for (unsigned k = 0; k < 8; k++) {
                const auto &row = host::fragments[32 * warp + 4 * g + k % 4];
                const auto &column = host::fragments[32 * warp + 4 * (2 * t + e) + k % 4];
                c[e + 2 * h] += row.a[h + 2 * (k / 4)] * column.b[k / 4];
            }
    host::wait(host::warps[warp], 32);
}
