"""EXP and logarithms, bit for bit as Java's StrictMath has them, which Spark calls.

StrictMath is fdlibm ("Freely Distributable LIBM", Sun Microsystems 1993): fixed steps of IEEE doubles, so the
same steps over NumPy's arrays give the same bits. Must never: call the C library's own, which rounds
otherwise, or change the order of an operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Reals = np.ndarray[Any, np.dtype[np.float64]]

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG10_2_HIGH, LOG10_2_LOW = 3.01029995663611771306e-01, 3.69423907715893078616e-13
INVERSE_LN2, INVERSE_LN10 = 1.44269504088896338700e00, 4.34294481903251816668e-01
OVERFLOW, UNDERFLOW = 7.09782712893383973096e02, -7.45133219101941108420e02
P1, P2, P3, P4, P5 = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
L1, L2, L3, L4, L5, L6, L7 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


def _high(numbers: Reals) -> Any:
    """The upper 32 bits of each double, with its sign."""
    return numbers.view(np.int64) >> 32


def _with_high(numbers: Reals, high: Any) -> Reals:
    """Doubles with other upper 32 bits."""
    return ((high << 32) | (numbers.view(np.int64) & 0xFFFFFFFF)).view(np.float64)


def exp(numbers: Reals) -> Reals:
    """e to the power of each number."""
    size = _high(numbers) & 0x7FFFFFFF
    inside = np.isfinite(numbers) & (numbers <= OVERFLOW) & (numbers >= UNDERFLOW)
    x = np.where(inside, numbers, 0.0)
    sign = np.where(x < 0, -1.0, 1.0)
    near, far = size < 0x3FF0A2B2, size > 0x3FD62E42  # |x| < 1.5 ln 2, |x| > 0.5 ln 2
    steps = np.where(near, sign, np.trunc(INVERSE_LN2 * x + 0.5 * sign))
    steps = np.where(far & inside, steps, 0.0)
    high, low = x - steps * LN2_HIGH, steps * LN2_LOW
    reduced = np.where(far, high - low, x)
    t = reduced * reduced
    c = reduced - t * (P1 + t * (P2 + t * (P3 + t * (P4 + t * P5))))
    alone = 1.0 - ((reduced * c) / (c - 2.0) - reduced)
    scaled = 1.0 - ((low - (reduced * c) / (2.0 - c)) - high)
    found = np.where(steps == 0, alone, np.ldexp(scaled, steps.astype(np.int64)))
    found = np.where(size < 0x3E300000, 1.0 + x, found)  # |x| < 2^-28
    beyond = np.where(numbers > 0, np.inf, 0.0)
    return np.where(inside, found, np.where(np.isnan(numbers), numbers, beyond))


def log(numbers: Reals) -> Reals:
    """The natural logarithm of each number that is larger than 0; of others NaN."""
    x, exponent = _normal(numbers)
    mantissa = _high(x) & 0xFFFFF
    half = (mantissa + 0x95F64) & 0x100000
    f = _with_high(x, mantissa | (half ^ 0x3FF00000)) - 1.0
    k = (exponent + (half >> 20)).astype(np.float64)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = z * (L1 + w * (L3 + w * (L5 + w * L7))) + w * (L2 + w * (L4 + w * L6))
    square = 0.5 * f * f
    wide = ((mantissa - 0x6147A) | (0x6B851 - mantissa)) > 0
    alone = np.where(wide, f - (square - s * (square + r)), f - s * (f - r))
    inner = np.where(wide, square - (s * (square + r) + k * LN2_LOW), s * (f - r) - k * LN2_LOW)
    found = np.where(k == 0, alone, k * LN2_HIGH - (inner - f))
    tiny = (0xFFFFF & (2 + mantissa)) < 3  # |f| < 2^-20
    r = f * f * (0.5 - 0.33333333333333333 * f)
    small = np.where(k == 0, f - r, k * LN2_HIGH - ((r - k * LN2_LOW) - f))
    small = np.where(f == 0, np.where(k == 0, 0.0, k * LN2_HIGH + k * LN2_LOW), small)
    return _where_positive(numbers, np.where(tiny, small, found))


def log10(numbers: Reals) -> Reals:
    """The decimal logarithm of each number that is larger than 0; of others NaN."""
    x, exponent = _normal(numbers)
    below = (exponent < 0).astype(np.int64)
    y = (exponent + below).astype(np.float64)
    x = _with_high(x, (_high(x) & 0xFFFFF) | ((0x3FF - below) << 20))
    found = (y * LOG10_2_LOW + INVERSE_LN10 * log(x)) + y * LOG10_2_HIGH
    return _where_positive(numbers, found)


def _normal(numbers: Reals) -> tuple[Reals, Any]:
    """Doubles that are not subnormal, and the exponents of the numbers."""
    fine = np.isfinite(numbers) & (numbers > 0)
    x = np.where(fine, numbers, 1.0)
    subnormal = _high(x) < 0x00100000
    x = np.where(subnormal, x * 2.0**54, x)
    return x, (_high(x) >> 20) - 1023 - np.where(subnormal, 54, 0)


def _where_positive(numbers: Reals, found: Reals) -> Reals:
    infinite = np.where(np.isinf(numbers), numbers, np.nan)
    return np.where(np.isfinite(numbers) & (numbers > 0), found, infinite)
