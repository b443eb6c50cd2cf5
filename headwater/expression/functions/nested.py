"""Parts of arrays, structs and maps.

Owns: `s.f`, `a[i]`, `m[k]`, ELEMENT_AT, GET, SIZE, ARRAY_CONTAINS, ARRAY, STRUCT. A place that an array does
not have raises; a key that a map does not have gives NULL. Must never: compare or order a whole one:
Arrow's kernels do not.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import DataError
from headwater.expression.coercion import (
    BOOLEAN,
    FLOATS,
    INT,
    common_type,
    convert,
    supported,
)
from headwater.expression.nodes import Bound, BoundCall
from headwater.expression.operand import Kernel, spread_all
from headwater.expression.signature import by_row, constant, taken
from headwater.expression.table import always, called, operation
from headwater.sql.types import is_list


def _field(operand: Bound, field: str) -> Bound | None:
    """`struct.field`, whatever the case of its name."""
    if not pa.types.is_struct(operand.type):
        return None
    fields = [operand.type.field(place) for place in range(operand.type.num_fields)]
    found = [n for n, own in enumerate(fields) if own.name.casefold() == field.casefold()]
    if len(found) != 1:
        return None
    return called("field", (operand,), fields[found[0]].type, found[0])


def _field_kernel(call: BoundCall) -> Kernel:
    (place,) = call.parameters
    return lambda value: pc.struct_field(value, [place])


operation("field", _field, _field_kernel)


def _struct(*arguments: Bound, names: tuple[str, ...]) -> Bound | None:
    """STRUCT(a AS x, …) of simple values, whose names are different."""
    known = {name.casefold() for name in names}
    if len(known) != len(names) or not all(supported(argument.type) for argument in arguments):
        return None
    fields = [(name, argument.type) for name, argument in zip(names, arguments, strict=True)]
    return called("struct", arguments, pa.struct(fields), *names)


def _struct_kernel(call: BoundCall) -> Kernel:
    fields = list(call.type)
    return lambda *values: pa.StructArray.from_arrays(spread_all(values), fields=fields)


operation("struct", _struct, _struct_kernel)


def _no_place(number: int, length: int) -> DataError:
    return DataError(
        f"the array has no element {number}",
        sqlstate="22003",
        detail=f"it has {length}",
        hint="get(array, place) and try_element_at give NULL instead",
    )


def _item(array: list[Any], place: int) -> Any:
    if not 0 <= place < len(array):
        raise _no_place(place, len(array))
    return array[place]


def _item_or_null(array: list[Any], place: int) -> Any:
    return array[place] if 0 <= place < len(array) else None


def _element(array: list[Any], number: int) -> Any:
    """ELEMENT_AT: counted from 1, from the end if negative."""
    if number == 0 or abs(number) > len(array):
        raise _no_place(number, len(array))
    return array[number - 1 if number > 0 else number]


def _of_array(name: str, operand: Bound, place: Bound) -> Bound | None:
    if not is_list(operand.type) or not supported(operand.type.value_type):
        return None
    found = taken([place], [INT])
    return None if found is None else called(name, (operand, *found), operand.type.value_type)


operation("item", partial(_of_array, "item"), by_row(_item), always)
operation("get", partial(_of_array, "get"), by_row(_item_or_null))
operation("element_at", partial(_of_array, "element_at"), by_row(_element), always)


def _value(operand: Bound, key: Bound) -> Bound | None:
    """`map[key]` of a constant text or whole number."""
    if not pa.types.is_map(operand.type) or not supported(operand.type.item_type):
        return None
    if operand.type.key_type != key.type or key.type in FLOATS or constant(key) is None:
        return None
    return called("value", (operand, key), operand.type.item_type)


def _value_kernel(call: BoundCall) -> Kernel:
    key = constant(call.arguments[1])

    def found(entries: list[tuple[Any, Any]], _: Any) -> Any:
        return next((value for name, value in entries if name == key), None)

    return by_row(found)(call)


operation("value", _value, _value_kernel)


def _size(operand: Bound) -> Bound | None:
    fine = is_list(operand.type) or pa.types.is_map(operand.type)
    return called("size", (operand,), INT) if fine else None


operation("size", _size, by_row(len))


def _contains(operand: Bound, value: Bound) -> Bound | None:
    """ARRAY_CONTAINS: unknown if it is not found, and an element is NULL."""
    if not is_list(operand.type) or operand.type.value_type in FLOATS:
        return None
    found = taken([value], [operand.type.value_type])
    if found is None or not supported(value.type):
        return None
    return called("array_contains", (operand, *found), BOOLEAN)


def _contained(array: list[Any], value: Any) -> bool | None:
    if any(element == value for element in array if element is not None):
        return True
    return None if None in array else False


operation("array_contains", _contains, by_row(_contained))


def _array(*elements: Bound) -> Bound | None:
    type_ = common_type(elements)
    if type_ is None or not supported(type_):
        return None
    converted = [convert(element, type_) for element in elements]
    return called("array", converted, pa.list_(pa.field("element", type_)))


def _array_kernel(call: BoundCall) -> Kernel:
    def compute(*values: Any) -> pa.Array:
        count = next(len(value) for value in values if not isinstance(value, pa.Scalar))
        columns = [
            [value.as_py()] * count if isinstance(value, pa.Scalar) else value.to_pylist()
            for value in values
        ]
        return pa.array([list(row) for row in zip(*columns, strict=True)], call.type)

    return compute


operation("array", _array, _array_kernel)
