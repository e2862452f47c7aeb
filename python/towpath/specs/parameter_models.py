# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Models of blocks of parameters, generated from the tables of the C++ core.

A parameter is written once, in the table next to its C++ struct (src/towpath/machine/*.hpp): name,
bounds and meaning. The same table checks values in C++ and in these models.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypedDict, TypeVar, cast

from pydantic import AfterValidator, Field, create_model
from pydantic_core import PydanticCustomError

from towpath import _core
from towpath.specs.spec_model import Block, Quantity, quantity_of

Model = TypeVar("Model", bound=Block)


class Row(TypedDict):
    """A row of a table, as the core exports it."""

    name: str
    type: str  # whole, number or truth
    min: float
    max: float
    is_power_of_two: bool
    form: str  # quantity, optional_quantity, flag or optional_flag
    default: float  # of an optional parameter
    default_source: str  # empty: an optional quantity has no default
    meaning: str


@cache
def tables() -> dict[str, dict[str, list[Row]]]:
    """Every table, by kind of description and then by block; parameters of the kind itself are in
    block "".
    """
    return cast(dict[str, dict[str, list[Row]]], _core.parameter_tables())


def from_table(kind: str, block: str, without: str = "") -> Callable[[type[Model]], type[Model]]:
    """Adds the parameters of a table to a model, as a decorator of its class.

    Args:
        kind: the kind of description, a key of `tables()`.
        block: the block's name.
        without: a parameter that the model defines itself.
    """
    fields = {row["name"]: _field_of(row) for row in tables()[kind][block]}
    fields.pop(without, None)

    def completed(model: type[Model]) -> type[Model]:
        about: Any = {"__doc__": model.__doc__, "__module__": model.__module__}
        return create_model(model.__name__, __base__=model, **about, **cast(Any, fields))

    return completed


def quantity_model(kind: str, name: str, block: str = "") -> type[Quantity[Any]]:
    """The model of one parameter with its source, as a field of another model.

    Args:
        kind: the kind of description, a key of `tables()`.
        name: the parameter's name.
        block: the block's name.
    """
    row = next(row for row in tables()[kind][block] if row["name"] == name)
    return _quantity_of(row["type"], row["min"], row["max"], row["is_power_of_two"])


def _field_of(row: Row) -> tuple[Any, Any]:
    described = {"description": row["meaning"]}
    if row["form"] == "flag":
        return bool, Field(strict=True, **described)  # type: ignore[call-overload]
    if row["form"] == "optional_flag":
        default = bool(row["default"])
        return bool, Field(default, strict=True, **described)  # type: ignore[call-overload]
    model: Any = _quantity_of(row["type"], row["min"], row["max"], row["is_power_of_two"])
    if row["form"] == "optional_quantity" and row["default_source"]:
        value = int(row["default"]) if row["type"] == "whole" else row["default"]
        default = model(value=value, source=f"default; {row['default_source']}")
        return model, Field(default, **described)  # type: ignore[call-overload]
    if row["form"] == "optional_quantity":
        return model | None, Field(None, **described)  # type: ignore[call-overload]
    return model, Field(**described)  # type: ignore[call-overload]


@cache
def _quantity_of(
    type_name: str, least: float, most: float, is_power_of_two: bool
) -> type[Quantity[Any]]:
    value: Any
    if type_name == "truth":
        value = Annotated[bool, Field(strict=True)]
    elif type_name == "whole":
        value = Annotated[int, Field(strict=True, ge=int(least), le=int(most))]
    else:
        least, most = _plain(least), _plain(most)
        value = Annotated[float, Field(strict=True, ge=least, le=most, allow_inf_nan=False)]
    if is_power_of_two:

        def check(number: int) -> int:
            if number & (number - 1):
                allowed = f"it must be a power of two, {int(least)} to {int(most)}"
                raise PydanticCustomError("power_of_two", "{allowed}", {"allowed": allowed})
            return number

        value = Annotated[value, AfterValidator(check)]
    return quantity_of(value)


def _plain(bound: float) -> float:
    """A bound without a decimal point if it does not need one, for sentences."""
    return int(bound) if bound == int(bound) else bound
