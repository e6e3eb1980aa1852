"""Prices and sensitivities of European options by Black, Scholes and Merton."""

from sympy import diff, erf, erfc, exp, log, sqrt, symbols
from sympy.utilities.lambdify import lambdify

S, K, T, r, q, sigma, z = symbols("S K T r q sigma z")

d1 = (log(S / K) + (r - q + sigma**2 / 2) * T) / (sigma * sqrt(T))
d2 = (log(S / K) + (r - q - sigma**2 / 2) * T) / (sigma * sqrt(T))
cdf = (1 + erf(z / sqrt(2))) / 2
tail = erfc(z / sqrt(2)) / 2
density = diff(cdf, z)


def at(function, point):
    return function.subs(z, point)


call = S * exp(-q * T) * at(cdf, d1) - K * exp(-r * T) * at(cdf, d2)
put = K * exp(-r * T) * at(tail, d2) - S * exp(-q * T) * at(tail, d1)
delta = exp(-q * T) * at(cdf, d1)
gamma = exp(-q * T) * at(density, d1) / (S * sigma * sqrt(T))
vega = S * exp(-q * T) * at(density, d1) * sqrt(T)
theta = (
    -S * exp(-q * T) * at(density, d1) * sigma / (2 * sqrt(T))
    + q * S * exp(-q * T) * at(cdf, d1)
    - r * K * exp(-r * T) * at(cdf, d2)
)
rho = K * T * exp(-r * T) * at(cdf, d2)
vanna = -exp(-q * T) * at(density, d1) * d2 / sigma
volga = vega * d1 * d2 / sigma

evaluate = lambdify(
    (S, K, T, r, q, sigma),
    [call, put, delta, gamma, vega, theta, rho, vanna, volga],
    modules=["numpy", "scipy"],
)


def outputs(points):
    return evaluate(*points)
