# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Common parts of all specs: frozen models, quantities with sources, errors in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic_core import PydanticCustomError

from towpath.errors import ConfigError, DescriptionError, quoted
from towpath.specs.input_file import FieldPath, YamlDocument

Number = TypeVar("Number")
Model = TypeVar("Model", bound=BaseModel)
Text = Annotated[str, Field(min_length=1, max_length=1000, strict=True)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}$", strict=True)]

MUST_BE_A_BLOCK = "it must be a block of fields"


def wrong(field: str, problem: str) -> PydanticCustomError:
    """An error about a field, for checks other than pydantic's."""
    return PydanticCustomError("towpath", "{problem}", {"field": field, "problem": problem})


# A list of more fields is no sentence; those most like the wrong one are named then.
_FIELDS_LISTED = 20


def _allowed(fields: Iterable[str], unknown: object) -> str:
    names = list(fields)
    if len(names) <= _FIELDS_LISTED:
        return f"choose one of {', '.join(names)}"
    import difflib

    alike = set(difflib.get_close_matches(str(unknown), names, _FIELDS_LISTED, cutoff=0))
    listed = ", ".join(name for name in names if name in alike)
    return f"choose one of {listed} and {len(names) - len(alike)} more"


class Frozen(BaseModel):
    """An immutable model without unknown fields."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="forbid", validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _name_unknown_fields(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for name in data:
                if name not in cls.model_fields:
                    problem = f"has no field {quoted(name)}; {_allowed(cls.model_fields, name)}"
                    raise PydanticCustomError("unknown_field", "{problem}", {"problem": problem})
        return data


class Quantity(Frozen, Generic[Number]):
    """A value and its source: a document, a measurement, or a derivation."""

    value: Number
    source: Text


def quantity_of(value: Any) -> type[Quantity[Any]]:
    """The model of a quantity whose value has a type with bounds.

    `Quantity[value]` is equivalent but takes ten times as long, because it spells out the type for
    a name.
    """
    return create_model("Quantity", __base__=Quantity, value=(value, ...))


class Block(Frozen):
    """A block of parameters, whose fields come from a table of the core (parameter_models.py)."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


Leaf = bool | int | float | str


def quantities_of(block: object, path: str = "") -> Iterator[tuple[str, Leaf, str]]:
    """Path, value and source of every quantity in a block, and in the blocks inside it.

    The source of words and flags is "".
    """
    if isinstance(block, Quantity):
        yield path, block.value, block.source
    elif isinstance(block, Frozen):
        for name in type(block).model_fields:
            yield from quantities_of(getattr(block, name), f"{path}.{name}" if path else name)
    elif isinstance(block, tuple):
        for number, item in enumerate(block):
            yield from quantities_of(item, f"{path}[{number}]")
    elif isinstance(block, (bool, str)):
        yield path, block, ""


if TYPE_CHECKING:
    Ratio = Quantity[float]
else:
    Ratio = quantity_of(Annotated[float, Field(strict=True, ge=1, le=64, allow_inf_nan=False)])


def values_of(block: Frozen | None) -> dict[str, Any]:
    """The values of a block by name, without their sources; empty for a missing block.

    Values equal to the defaults of the core are also left out.
    """
    if block is None:
        return {}
    fields = ((name, getattr(block, name)) for name in type(block).model_fields)
    return {
        name: value.value if isinstance(value, Quantity) else value
        for name, value in fields
        if value is not None and (name in block.model_fields_set or not isinstance(value, Quantity))
    }


@contextmanager
def errors_of_core(spec: Frozen) -> Iterator[None]:
    """Converts an error of the core about a spec's data to an error about the spec's field."""
    try:
        yield
    except DescriptionError as error:
        field = error.field
        value: Any = spec
        for step in _parsed(field) if field else ():
            value = value[step] if isinstance(step, int) else getattr(value, step, None)
        where = f"{field}.value" if isinstance(value, Quantity) else field or "the spec"
        raise wrong(where, error.problem) from None


def validated(model: type[Model], document: YamlDocument, file: str) -> Model:
    """The model of a document.

    Args:
        model: class of the model.
        document: the file's content.
        file: name of the file, for errors.

    Raises:
        ConfigError: a field is missing, unknown or out of bounds; only the first one is named.
    """
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise _first_error(error, document, file) from None


def error_at(field: str, problem: str, document: YamlDocument, file: str) -> ConfigError:
    """The error about a field of a document, with the field's line."""
    path = _parsed(field)
    while path and path not in document.lines:
        path = path[:-1]
    return ConfigError(problem, file=file, line=document.lines.get(path, 1), field=field)


@contextmanager
def errors_at(document: YamlDocument, file: str) -> Iterator[None]:
    """Adds file and line to the errors from `wrong` within the block."""
    try:
        yield
    except PydanticCustomError as error:
        context = error.context or {}
        raise error_at(context["field"], context["problem"], document, file) from None


def _first_error(error: ValidationError, document: YamlDocument, file: str) -> ConfigError:
    first = error.errors(include_url=False)[0]
    context = first.get("ctx", {})
    kind = first["type"]
    if kind == "towpath":
        return error_at(str(context["field"]), str(context["problem"]), document, file)
    path, rest = _resolved(first["loc"], document.data)
    line = document.lines.get(path, 1)
    field = _spelled(path)
    if kind == "unknown_field":
        problem = str(context["problem"])
    elif kind == "missing":
        problem = f"has no field '{rest[-1] if rest else '?'}'"
    elif kind == "union_tag_not_found":
        problem = "has no field 'shape'"
    elif kind == "union_tag_invalid":
        problem = f"has shape {quoted(context['tag'])}; choose one of {context['expected_tags']}"
    elif kind in ("model_type", "model_attributes_type", "dict_type"):
        problem = f"is {quoted(first['input'])}; {MUST_BE_A_BLOCK}"
    else:
        allowed = (
            first["msg"].replace("Input should", "it must").replace("String should", "it must")
        )
        problem = f"is {quoted(first['input'])}; {allowed}"
    return ConfigError(problem, file=file, line=line, field=field or "the spec")


def _resolved(location: FieldPath, data: object) -> tuple[FieldPath, FieldPath]:
    """Divides a location into the part that leads through the data, and the rest.

    Pydantic adds the tags of unions to its locations. They are left out.
    """
    path: list[str | int] = []
    rest: list[str | int] = []
    for step in location:
        if isinstance(data, dict) and step in data:
            data = data[step]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            rest.append(step)
            continue
        path.append(step)
    return tuple(path), tuple(rest)


def _spelled(path: FieldPath) -> str:
    """A path as text.

    >>> _spelled(("hosts", "nics", 0, "gpus"))
    'hosts.nics[0].gpus'
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            word = (
                step
                if step.isidentifier() or step.replace("-", "_").isidentifier()
                else quoted(step)
            )
            text += f".{word}" if text else word
    return text


def _parsed(field: str) -> FieldPath:
    steps: list[str | int] = []
    for part in field.replace("[", ".").replace("]", "").split("."):
        steps.append(int(part) if part.isdigit() else part)
    return tuple(steps)
