"""What the official SDK of OpenAI accepts as a request: its types, in which nothing else may be."""

import collections.abc
from functools import cache
from typing import Literal, Union, get_args, get_origin

from openai.types.chat.completion_create_params import CompletionCreateParams
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import NotRequired, Required, TypedDict, get_type_hints, is_typeddict


def chat_request(body):
    """Raises if a body of Chat Completions has a wrong type or a key that the SDK does not know."""
    strictly(CompletionCreateParams).validate_python(body)


@cache
def strictly(hint):
    return TypeAdapter(strict(hint))


@cache
def strict(hint):
    """A type as pydantic checks it to the last member: it leaves unknown keys alone, and checks no Iterable before it is
    read."""
    if is_typeddict(hint):
        hints = get_type_hints(hint, include_extras=True)
        # Whether a key that says nothing of it must be there depends on the class that has it.
        marked = {name: NotRequired[member] if is_optional(hint, name, member) else member for name, member in hints.items()}
        made = TypedDict(hint.__name__, {name: strict(member) for name, member in marked.items()})
        made.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
        return made
    origin, inner = get_origin(hint), get_args(hint)
    if not inner or origin is Literal:
        return hint
    inner = tuple(map(strict, inner))
    if origin is Union:
        return Union[inner]  # noqa: UP007: there are any number of them
    if origin is collections.abc.Iterable or origin.__name__ == "SequenceNotStr":
        return list[inner]
    return origin[inner if len(inner) > 1 else inner[0]]


def is_optional(hint, name, member):
    return name in hint.__optional_keys__ and get_origin(member) not in (Required, NotRequired)
