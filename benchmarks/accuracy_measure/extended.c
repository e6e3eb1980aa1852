/* Special functions in extended precision (64 bits), over arrays.
 *
 * erf to y1 are the C library's; erfinv and digamma are computed here. Every result is within a few
 * units of 2**-64 of max(|value|, 1), or of the value itself for erf, erfc, erfinv and gamma: a
 * thousandth of a double's unit in the last place, which is enough to find the points where a
 * double is worst.
 */

#define _GNU_SOURCE
#include <math.h>

static const long double PI = 3.141592653589793238462643383279502884L;
static const long double SQRT_PI = 1.772453850905516027298167483341145183L;

/* The start of Newton's iteration is S. Winitzki's approximation, good to 2e-3; each step, of third
 * order, triples the digits. Near 1 the complement 1 - x is exact, and erfc keeps its digits. */
static long double erfinv_(long double x)
{
    long double size = fabsl(x);
    if (!(size <= 1))
        return NAN;
    if (size == 1)
        return copysignl(INFINITY, x);
    long double y = size * SQRT_PI / 2;
    if (size < 1e-6L)
        return copysignl(y * (1 + y * y / 3), x);
    long double w = log1pl(-size * size), c = 2 / (PI * 0.147L) + w / 2;
    y = sqrtl(sqrtl(c * c - w / 0.147L) - c);
    for (int step = 0; step < 3; step++) {
        long double off = size < 0.5L ? erfl(y) - size : (1 - size) - erfcl(y);
        long double u = off * SQRT_PI / 2 * expl(y * y);
        y -= u / (1 + y * u);
    }
    return copysignl(y, x);
}

/* The asymptotic series from 24 on, after recurrences; reflection below 0 with the exact distance to
 * the nearest integer. */
static long double digamma_(long double x)
{
    static const long double series[] = {
        1.0L / 12, -1.0L / 120, 1.0L / 252, -1.0L / 240, 1.0L / 132,
        -691.0L / 32760, 1.0L / 12, -3617.0L / 8160, 43867.0L / 14364, -174611.0L / 6600,
    };
    if (x < 0) {
        long double r = x - rintl(x), size = fabsl(r);
        if (isinf(x) || r == 0)
            return NAN;
        long double t = size < 0.25L ? 1 / tanl(PI * size) : tanl(PI * (0.5L - size));
        return digamma_(1 - x) - copysignl(PI * t, r);
    }
    if (x == 0)
        return copysignl(INFINITY, -x);
    long double moved = 0;
    for (; x < 24; x++)
        moved += 1 / x;
    long double u = 1 / (x * x), tail = 0;
    for (int k = 9; k >= 0; k--)
        tail = (tail + series[k]) * u;
    return logl(x) - 0.5L / x - tail - moved;
}

#define UNARY(name, function)                                                                      \
    void name(long n, const long double *a, long double *out)                                      \
    {                                                                                              \
        for (long i = 0; i < n; i++)                                                               \
            out[i] = function(a[i]);                                                               \
    }

UNARY(erf_all, erfl)
UNARY(erfc_all, erfcl)
UNARY(erfinv_all, erfinv_)
UNARY(gamma_all, tgammal)
UNARY(lgamma_all, lgammal)
UNARY(digamma_all, digamma_)
UNARY(j0_all, j0l)
UNARY(j1_all, j1l)
UNARY(y0_all, y0l)
UNARY(y1_all, y1l)

void fma_all(long n, const long double *a, const long double *b, const long double *c,
             long double *out)
{
    for (long i = 0; i < n; i++)
        out[i] = fmal(a[i], b[i], c[i]);
}
