# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads untrusted XML: bounded, without entities, each element with its line."""

from __future__ import annotations

import re
import xml.sax
from dataclasses import dataclass, field
from xml.sax.handler import ContentHandler, ErrorHandler
from xml.sax.xmlreader import AttributesImpl

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from towpath.errors import ConfigError, control_character, quoted

_DEPTH_MAX = 32
_ELEMENTS_MAX = 100_000
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")


@dataclass
class XmlElement:
    """An element of a file; its accessors check their results and name file and line."""

    tag: str
    attributes: dict[str, str]
    line: int
    file: str
    children: list[XmlElement] = field(default_factory=list)
    content: str = ""

    def error(self, problem: str) -> ConfigError:
        """An error about this element."""
        return ConfigError(problem, file=self.file, line=self.line, field=f"<{self.tag}>")

    def text(self, name: str) -> str:
        """A required attribute.

        Raises:
            ConfigError: the attribute is missing.
        """
        if name not in self.attributes:
            raise self.error(f"has no attribute '{name}'")
        return self.attributes[name]

    def integer(self, name: str, minimum: int, maximum: int, default: int | None = None) -> int:
        """An attribute that is a whole number from `minimum` to `maximum`.

        Raises:
            ConfigError: the value is not such a number, or is missing and has no default.
        """
        if default is not None and name not in self.attributes:
            return default
        text = self.text(name)
        if not _INTEGER.match(text) or not minimum <= int(text) <= maximum:
            allowed = f"a whole number from {minimum} to {maximum}"
            raise self.error(f"has {name}={quoted(text)}; it must be {allowed}")
        return int(text)

    def word(self, name: str, allowed: tuple[str, ...]) -> str:
        """An attribute with one of several allowed words.

        Raises:
            ConfigError: the attribute is missing or has another value.
        """
        text = self.text(name)
        if text not in allowed:
            choice = ", ".join(repr(word) for word in allowed)
            raise self.error(f"has {name}={quoted(text)}; it must be one of {choice}")
        return text

    def check_children(self, allowed: dict[str, tuple[str, ...]]) -> None:
        """Checks this element and all elements below it against the allowed tags of each.

        Raises:
            ConfigError: an element is in a wrong place.
        """
        for child in self.children:
            tags = allowed.get(self.tag, ())
            if child.tag not in tags:
                may = "nothing" if not tags else ", ".join(f"<{tag}>" for tag in tags)
                raise child.error(f"cannot be in <{self.tag}>, which may contain {may}")
            child.check_children(allowed)


def parse_xml(text: str, file: str) -> XmlElement:
    """The root element of `text`.

    >>> root = parse_xml("<a><b size='3'/></a>", "example")
    >>> root.children[0].integer("size", 0, 9), root.children[0].line
    (3, 1)

    Raises:
        ConfigError: the text is not XML, declares entities or a document type, or is nested too
        deeply.
    """
    parser = DefusedExpatParser(forbid_dtd=True)
    handler = _Handler(file, parser)
    parser.setContentHandler(handler)
    parser.setErrorHandler(ErrorHandler())
    try:
        parser.feed(text)
        parser.close()
    except xml.sax.SAXParseException as error:
        problem = f"is not valid XML: {error.getMessage()}"
        raise ConfigError(problem, file=file, line=error.getLineNumber() or 1) from None
    except DefusedXmlException:
        problem = "declares a document type or entities, which are not read"
        raise ConfigError(problem, file=file, line=parser.getLineNumber() or 1) from None
    if handler.root is None:
        raise ConfigError("holds no element", file=file, line=1)
    return handler.root


class _Handler(ContentHandler):
    def __init__(self, file: str, parser: DefusedExpatParser) -> None:
        super().__init__()
        self.root: XmlElement | None = None
        self._file = file
        self._parser = parser
        self._open: list[XmlElement] = []
        self._texts: list[list[str]] = []
        self._elements = 0

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802, SAX names it
        line = self._parser.getLineNumber() or 1
        self._elements += 1
        if self._elements > _ELEMENTS_MAX:
            problem = f"holds too many elements; at most {_ELEMENTS_MAX} are read"
            raise ConfigError(problem, file=self._file, line=line)
        if len(self._open) >= _DEPTH_MAX:
            problem = f"is nested too deeply; it must have at most {_DEPTH_MAX} levels"
            raise ConfigError(problem, file=self._file, line=line)
        control = next(filter(None, map(control_character, attrs.values())), None)
        if control is not None:
            problem = f"contains the character {ascii(control)}, which is not text"
            raise ConfigError(problem, file=self._file, line=line)
        tag = name if len(name) <= 40 and name.isascii() else quoted(name)
        element = XmlElement(tag, dict(attrs.items()), line, self._file)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)
        self._texts.append([])

    def characters(self, content: str) -> None:
        self._texts[-1].append(content)

    def endElement(self, name: str) -> None:  # noqa: N802
        self._open.pop().content = "".join(self._texts.pop())
