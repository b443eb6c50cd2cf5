"""Skewness, kurtosis, covariance, correlation and regression as partials: families beside those of `fold`.

Owns: central moments up to the fourth, and those of two arguments together; both merge without loss (Chan,
Pébay). Distances are taken from the first value of a group, so that equal values are exactly without spread,
for which Spark gives NULL. Must never: subtract; where rows are taken back the group is folded afresh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.chunk import Chunk
from headwater.fold.columns import Column, Slots, Vector, decode
from headwater.fold.families import Family, Vectors, added


@dataclass(frozen=True)
class MomentFunction:
    """A row of the table: how many arguments, and what comes out of the moments."""

    argument_count: int
    finish: Callable[[Vectors], pa.Array]


class HigherMoments(Family):
    """Count, mean, and sums of the second, third and fourth power of the distance from it."""

    names = ("count", "mean", "second", "third", "fourth")
    identities, dtypes = (0.0,) * 5, (np.float64,) * 5

    def __init__(self, argument: int, unit: float) -> None:
        self.argument, self._unit = argument, unit

    def fold(self, chunk: Chunk) -> Vectors:
        ids, size = chunk.ids(self.argument), chunk.groups.size
        values = chunk.values(self.argument).astype(np.float64) / self._unit
        counts, means = _means(ids, values, size)
        distances = values - means[ids]
        powers = [distances**2, distances**3, distances**4]
        return [counts, means, *(added(ids, power, size) for power in powers)]

    def merge(self, target: Vectors, values: Sequence[Vector]) -> None:
        mine, mean, second, third, fourth = target
        theirs, other_mean, other_second, other_third, other_fourth = values
        both, apart = _apart(mine, theirs, mean, other_mean)
        product = mine * theirs / both
        fourth += (
            other_fourth + apart**4 * product * (mine**2 - mine * theirs + theirs**2) / both**2
        )
        fourth += 6 * apart**2 * (mine**2 * other_second + theirs**2 * second) / both**2
        fourth += 4 * apart * (mine * other_third - theirs * third) / both
        third += other_third + apart**3 * product * (mine - theirs) / both
        third += 3 * apart * (mine * other_second - theirs * second) / both
        second += other_second + apart**2 * product
        mean += np.where(mine > 0, apart * theirs / both, other_mean)
        mine += theirs


class Comoments(Family):
    """Count, two means, the sum of the products of the distances from them, and of their squares."""

    names = ("count", "left", "right", "product", "left_square", "right_square")
    identities, dtypes = (0.0,) * 6, (np.float64,) * 6

    def __init__(self, arguments: tuple[int, int], units: tuple[float, float]) -> None:
        self._arguments, self._units = arguments, units

    def fold(self, chunk: Chunk) -> Vectors:
        left, right = (chunk.columns[argument] for argument in self._arguments)
        rows = both_there(left, right)
        ids, size = chunk.groups.ids[rows], chunk.groups.size
        pairs = zip((left, right), self._units, strict=True)
        x, y = (column.values[rows].astype(np.float64) / unit for column, unit in pairs)
        (counts, x_means), (_, y_means) = _means(ids, x, size), _means(ids, y, size)
        x, y = x - x_means[ids], y - y_means[ids]
        return [
            counts,
            x_means,
            y_means,
            *(added(ids, part, size) for part in (x * y, x * x, y * y)),
        ]

    def merge(self, target: Vectors, values: Sequence[Vector]) -> None:
        mine, theirs = target[0], values[0]
        both, x = _apart(mine, theirs, target[1], values[1])
        _, y = _apart(mine, theirs, target[2], values[2])
        product = mine * theirs / both
        for place, distance in ((3, x * y), (4, x * x), (5, y * y)):
            target[place][:] += values[place] + distance * product
        for place, distance in ((1, x), (2, y)):
            target[place][:] += np.where(mine > 0, distance * theirs / both, values[place])
        mine += theirs


def both_there(left: Column, right: Column) -> Slots:
    """The rows where neither of two columns is NULL."""
    there = np.ones(len(left), np.bool_)
    for column in (left, right):
        if column.valid is not None:
            there &= column.valid
    return np.flatnonzero(there)


def _means(ids: Slots, values: Vector, size: int) -> tuple[Vector, Vector]:
    """Counts, and means as a distance from the first value of a group."""
    counts = np.bincount(ids, minlength=size).astype(np.float64)
    first = np.zeros(size)
    first[ids[::-1]] = values[::-1]
    return counts, first + added(ids, values - first[ids], size) / np.maximum(counts, 1.0)


def _apart(mine: Vector, theirs: Vector, mean: Vector, other: Vector) -> tuple[Vector, Vector]:
    """How many there are together, and how far the means are apart: not at all if a side is empty."""
    both = np.maximum(mine + theirs, 1.0)
    return both, np.where((mine > 0) & (theirs > 0), other - mean, 0.0)


def _given(values: Vector, valid: Vector) -> pa.Array:
    return decode(np.where(valid, values, 0.0), None if valid.all() else valid, pa.float64())


def _divided(values: Vector, divisors: Vector, valid: Vector) -> pa.Array:
    return _given(values / np.where(valid, divisors, 1.0), valid)


def _skewness(parts: Vectors) -> pa.Array:
    counts, _, second, third, _ = parts
    return _divided(np.sqrt(counts) * third, np.sqrt(second**3), (counts > 0) & (second != 0))


def _kurtosis(parts: Vectors) -> pa.Array:
    counts, _, second, _, fourth = parts
    valid = (counts > 0) & (second != 0)
    return _given(counts * fourth / np.where(valid, second**2, 1.0) - 3.0, valid)


def _covariance(sample: int) -> Callable[[Vectors], pa.Array]:
    return lambda parts: _divided(parts[3], parts[0] - sample, parts[0] > sample)


def _correlation(parts: Vectors) -> pa.Array:
    spread = np.sqrt(parts[4] * parts[5])
    return _divided(parts[3], spread, (parts[0] > 1) & (spread != 0))


def _sum(place: int) -> Callable[[Vectors], pa.Array]:
    """One of the sums of products and squares."""
    return lambda parts: _given(parts[place], parts[0] > 0)


def _slope(parts: Vectors) -> pa.Array:
    return _divided(parts[3], parts[5], parts[5] != 0)


def _intercept(parts: Vectors) -> pa.Array:
    valid = parts[5] != 0
    slope = parts[3] / np.where(valid, parts[5], 1.0)
    return _given(parts[1] - slope * parts[2], valid)


def _determination(parts: Vectors) -> pa.Array:
    """regr_r2: where only the right argument spreads, all is explained."""
    _, _, _, product, left, right = parts
    found = product**2 / np.where(left != 0, left, 1.0) / np.where(right != 0, right, 1.0)
    return _given(np.where(left == 0, 1.0, found), (parts[0] > 0) & (right != 0))


MOMENTS: dict[str, MomentFunction] = {
    "skewness": MomentFunction(1, _skewness),
    "kurtosis": MomentFunction(1, _kurtosis),
    "covar_pop": MomentFunction(2, _covariance(0)),
    "covar_samp": MomentFunction(2, _covariance(1)),
    "corr": MomentFunction(2, _correlation),
    "regr_sxx": MomentFunction(2, _sum(5)),
    "regr_syy": MomentFunction(2, _sum(4)),
    "regr_sxy": MomentFunction(2, _sum(3)),
    "regr_slope": MomentFunction(2, _slope),
    "regr_intercept": MomentFunction(2, _intercept),
    "regr_r2": MomentFunction(2, _determination),
}


def moments_of(arguments: Sequence[int], types: Sequence[pa.DataType]) -> Family:
    """The family behind such a function, for arguments of some types."""
    units = [_unit(type_) for type_ in types]
    if len(arguments) == 1:
        return HigherMoments(arguments[0], units[0])
    left, right = arguments
    return Comoments((left, right), (units[0], units[1]))


def _unit(type_: pa.DataType) -> float:
    if pa.types.is_decimal128(type_):
        return 10.0**type_.scale
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return 1.0
    raise NotSupportedError(f"type {type_} has no moments")
