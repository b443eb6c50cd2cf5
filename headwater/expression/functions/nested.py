"""Parts of arrays, structs and maps.

Owns: `s.f`, `a[i]`, `m[k]`, ELEMENT_AT, GET, SIZE, what is asked of the elements of an array and of the keys
of a map, ARRAY, STRUCT, MAP. A place that an array does not have raises; a key that a map does not have gives
NULL. Must never: compare or order a whole one: Arrow's kernels do not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import DataError
from headwater.expression.coercion import (
    BIGINT,
    BOOLEAN,
    FLOATS,
    INT,
    STRING,
    common_type,
    convert,
    supported,
)
from headwater.expression.nodes import Bound, BoundCall
from headwater.expression.operand import Kernel, spread_all
from headwater.expression.signature import by_row, constant, fixed, list_of, taken
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


def _try_element(operand: Bound, place: Bound) -> Bound | None:
    """TRY_ELEMENT_AT of a constant number, which is not 0: that raises here too."""
    return _of_array("try_element_at", operand, place) if constant(place) else None


def _element_or_null(array: list[Any], number: int) -> Any:
    return _item_or_null(array, number - 1 if number > 0 else len(array) + number)


operation("try_element_at", _try_element, by_row(_element_or_null))


def _by_key(name: str, result: pa.DataType | None, operand: Bound, key: Bound) -> Bound | None:
    """A question to a map with a key of its type; without `result` the answer is a value of the map."""
    if not pa.types.is_map(operand.type) or operand.type.key_type != key.type:
        return None
    type_ = operand.type.item_type if result is None else result
    if not supported(key.type) or key.type in FLOATS or not supported(type_):
        return None
    return called(name, (operand, key), type_)


def _value(entries: list[tuple[Any, Any]], key: Any) -> Any:
    return next((value for name, value in entries if name == key), None)


def _has_key(entries: list[tuple[Any, Any]], key: Any) -> bool:
    return any(name == key for name, _ in entries)


operation("value", partial(_by_key, "value", None), by_row(_value))
operation("map_contains_key", partial(_by_key, "map_contains_key", BOOLEAN), by_row(_has_key))


def _side(name: str, operand: Bound) -> Bound | None:
    """MAP_KEYS or MAP_VALUES."""
    if not pa.types.is_map(operand.type):
        return None
    keys = name == "map_keys"
    return called(
        name, (operand,), list_of(operand.type.key_type if keys else operand.type.item_type)
    )


operation("map_keys", partial(_side, "map_keys"), by_row(lambda pairs: [key for key, _ in pairs]))
operation("map_values", partial(_side, "map_values"), by_row(lambda pairs: [v for _, v in pairs]))


def _map(*parts: Bound) -> Bound | None:
    """MAP(key, value, …) by constant keys, all different."""
    keys, values = parts[::2], parts[1::2]
    names = [constant(key) for key in keys]
    known = None not in names and len(set(names)) == len(names) == len(values) > 0
    key_type, value_type = common_type(keys), common_type(values)
    if (
        not known
        or key_type not in (STRING, INT)
        or value_type is None
        or not supported(value_type)
    ):
        return None
    converted = [convert(value, value_type) for value in values]
    return called("map", converted, pa.map_(key_type, value_type), *names)


def _map_kernel(call: BoundCall) -> Kernel:
    return _collected(call.type, lambda row: list(zip(call.parameters, row, strict=True)))


operation("map", _map, _map_kernel)


def _size(operand: Bound) -> Bound | None:
    fine = is_list(operand.type) or pa.types.is_map(operand.type)
    return called("size", (operand,), INT) if fine else None


operation("size", _size, by_row(len))


def _asked(name: str, result: pa.DataType, operand: Bound, value: Bound) -> Bound | None:
    """A question to an array with a value of its type."""
    if not is_list(operand.type) or operand.type.value_type in FLOATS:
        return None
    found = taken([value], [operand.type.value_type])
    if found is None or not supported(value.type):
        return None
    return called(name, (operand, *found), result)


def _contained(array: list[Any], value: Any) -> bool | None:
    """ARRAY_CONTAINS: unknown if it is not found, and an element is NULL."""
    if any(element == value for element in array if element is not None):
        return True
    return None if None in array else False


def _position(array: list[Any], value: Any) -> int:
    return array.index(value) + 1 if value in array else 0


operation("array_contains", partial(_asked, "array_contains", BOOLEAN), by_row(_contained))
operation("array_position", partial(_asked, "array_position", BIGINT), by_row(_position))


def _extreme(name: str, operand: Bound) -> Bound | None:
    """ARRAY_MAX or ARRAY_MIN, which pass over NULL."""
    if not is_list(operand.type):
        return None
    type_ = operand.type.value_type
    return called(name, (operand,), type_) if supported(type_) and type_ not in FLOATS else None


def _without_null(choose: Callable[..., Any], array: list[Any]) -> Any:
    return choose((element for element in array if element is not None), default=None)


operation("array_max", partial(_extreme, "array_max"), by_row(partial(_without_null, max)))
operation("array_min", partial(_extreme, "array_min"), by_row(partial(_without_null, min)))
fixed(
    "array_join",
    [[list_of(STRING), STRING], [list_of(STRING), STRING, STRING]],
    STRING,
    by_row(
        lambda array, separator, absent=None: separator.join(
            absent if element is None else element
            for element in array
            if element is not None or absent is not None
        )
    ),
)


def _array(*elements: Bound) -> Bound | None:
    type_ = common_type(elements)
    if type_ is None or not supported(type_):
        return None
    converted = [convert(element, type_) for element in elements]
    return called("array", converted, list_of(type_))


def _collected(type_: pa.DataType, make: Callable[[tuple[Any, ...]], Any]) -> Kernel:
    """The values of each row, NULLs too, as one value."""

    def compute(*values: Any) -> pa.Array:
        columns = [value.to_pylist() for value in spread_all(values)]
        return pa.array([make(row) for row in zip(*columns, strict=True)], type_)

    return compute


operation("array", _array, lambda call: _collected(call.type, list))
