"""A text that is parsed, and parsed again as it is edited."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from importlib import import_module

import tree_sitter

from lookup_spec.text.languages import Language
from lookup_spec.text.syntax import Part, Syntax, TokenClass

MAX_BYTES = 2_000_000
"""Longer texts are not parsed."""

MAX_NODES = 500_000
"""Texts with more nodes are not read; programs have about one for five characters."""

_SECONDS, _SECONDS_PER_BYTE = 0.25, 1e-6  # ten times what programs take
_CHUNK = 1 << 16

_CONTINUATION = re.compile(rb"[\x80-\xbf]+")
_LEADING = re.compile(rb"[^\x80-\xbf]+")
_LONGEST_WORD = 24

_CLASS = 7
_NAMED, _BLOCK, _DEFINITION, _VALUE, _CARRIER, _PLAIN = (1 << bit for bit in range(3, 9))
_CLASS_NAMES = {
    TokenClass.COMMENT: r".*comment|(inner_)?attribute_item",
    TokenClass.OTHER: r"interpolation|string_interpolation|template_substitution|(jsx_|raw_)?text",
    TokenClass.STRING: r".*string.*|char_literal|character(_literal)?|rune_literal|regex|heredoc_body|nowdoc"
    r"|(quoted_)?attribute_value",
    TokenClass.NUMBER: r"integer|float|number|rational|imaginary|(integer|float)_value"
    r"|(.*_)?(int|integer|float|point|real|imaginary|number)_literal",
    TokenClass.IDENTIFIER: r"(?!scoped_|nested_|qualified_).*identifier.*|name|constant|word"
    r"|(instance|class|global)_variable|(variable|property|class|tag|attribute|function|id)_name",
}
"""What kinds of nodes are called, the first that fits."""


class Document:
    """A text and what is known about its syntax. Never changes; safe to share between threads.

    Texts of unknown languages, longer than ``MAX_BYTES`` or with NUL characters are not parsed, nor is what takes a
    parser far longer than programs do; of texts with syntax errors all is known that can be made out.

    Args:
        text: any text; line ends count as they are.
        language: None if it is not known.
    """

    def __init__(self, text: str, language: Language | None) -> None:
        self.text = text
        self.language = language
        self._data = _parsable(text, language)
        self._tree = None if self._data is None or language is None else _parse(self._data, language)

    @cached_property
    def syntax(self) -> Syntax:
        """Facts about the text."""
        if self._tree is None or self._data is None or self.language is None:
            return Syntax.unknown(self.text)
        if self._tree.root_node.descendant_count > MAX_NODES:
            return Syntax.unknown(self.text)
        return _Reading(self.text, self._data, self.language).read(self._tree)

    def edited(self, text: str) -> Document:
        """The document with another text, mostly the same: only what changed is parsed.

        The result is that of parsing the whole text.
        """
        document = Document.__new__(Document)
        document.text, document.language = text, self.language
        document._data, document._tree = _parsable(text, self.language), None
        if document._data is not None and self.language is not None:
            document._tree = self._parsed_again(document._data, self.language)
        return document

    def _parsed_again(self, data: bytes, language: Language) -> tree_sitter.Tree | None:
        if self._tree is not None and self._data is not None:
            tree = self._tree.copy()
            start, old_end, new_end = _difference(self._data, data)
            tree.edit(
                start, old_end, new_end,
                _point(self._data, start), _point(self._data, old_end), _point(data, new_end),
            )  # fmt: skip
            parsed = _parse(data, language, tree)
            # Around errors, what a parser makes of a text depends on what it made of the text before.
            if parsed is not None and not parsed.root_node.has_error:
                return parsed
        return _parse(data, language)


def _parsable(text: str, language: Language | None) -> bytes | None:
    if language is None or "\0" in text or len(text) > MAX_BYTES:
        return None
    data = text.encode("utf-8", "replace")  # half a surrogate pair becomes a question mark
    return data if len(data) <= MAX_BYTES else None


def _parse(data: bytes, language: Language, before: tree_sitter.Tree | None = None) -> tree_sitter.Tree | None:
    """The tree; None where it would take far longer than for any program: errors can cost the square of the length."""
    # Of this thread's own time, so that it does not depend on what else the machine does.
    deadline = time.thread_time() + _SECONDS + _SECONDS_PER_BYTE * len(data)
    parser = tree_sitter.Parser(_grammar(language))

    def read(start: int, _: tree_sitter.Point) -> bytes:
        return data[start : start + _CHUNK]

    def late(_start: int, _error: bool) -> bool:
        return time.thread_time() > deadline

    try:
        if before is None:
            return parser.parse(read, progress_callback=late)
        return parser.parse(read, before, progress_callback=late)
    except ValueError:  # what an abandoned parse raises
        return None


@cache
def _grammar(language: Language) -> tree_sitter.Language:
    return tree_sitter.Language(getattr(import_module(language.grammar), language.entry)())


def _difference(old: bytes, new: bytes) -> tuple[int, int, int]:
    """Where two texts begin to differ, and where in each they end to."""
    most = min(len(old), len(new))
    head = _longest(most, lambda size: old[:size] == new[:size])
    while head and (_continues(old, head) or _continues(new, head)):
        head -= 1
    tail = _longest(most - head, lambda size: old[len(old) - size :] == new[len(new) - size :])
    while tail and _continues(old, len(old) - tail):
        tail -= 1
    return head, len(old) - tail, len(new) - tail


def _longest(most: int, agrees: Callable[[int], bool]) -> int:
    """The largest size up to ``most`` that agrees; all smaller ones do, too."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if agrees(middle) else (low, middle - 1)
    return low


def _continues(data: bytes, place: int) -> bool:
    """Whether a place lies within a character."""
    return place < len(data) and 0x80 <= data[place] < 0xC0


def _point(data: bytes, place: int) -> tuple[int, int]:
    return data.count(b"\n", 0, place), place - data.rfind(b"\n", 0, place) - 1


@cache
def _roles(language: Language) -> Mapping[int, int]:
    """What each kind of node means, by its number: a token class and flags."""
    grammar = _grammar(language)
    roles = {}
    for kind in range(grammar.node_kind_count):
        name = grammar.node_kind_for_id(kind) or ""
        if grammar.node_kind_is_named(kind):
            roles[kind] = _named_role(name, language)
        elif name.isidentifier():
            roles[kind] = int(TokenClass.KEYWORD)
    return roles


def _named_role(name: str, language: Language) -> int:
    classes = (token_class for token_class, names in _CLASS_NAMES.items() if re.fullmatch(names, name))
    token_class = next(classes, None)
    role = _NAMED | (_PLAIN if token_class is None else int(token_class))
    role |= _BLOCK * (name in language.blocks) | _DEFINITION * (name in language.definitions)
    return role | _VALUE * (name in language.values) | _CARRIER * (name in language.carriers)


class _Reading:
    """Reads the facts off a tree, which counts bytes."""

    def __init__(self, text: str, data: bytes, language: Language) -> None:
        self._text, self._data, self._language = text, data, language
        self._classes = bytearray(len(data))
        self._statements: list[tuple[int, int]] = []
        self._definitions: dict[tuple[int, int], str] = {}

    def read(self, tree: tree_sitter.Tree) -> Syntax:
        self._walk(tree)
        data, classes = self._data, bytes(self._classes)
        if len(data) > len(self._text):
            classes = b"".join(classes[found.start() : found.end()] for found in _LEADING.finditer(data))
        characters = _Characters(data)
        definitions = [
            (self._with_comments(characters(start), classes), characters(end), name)
            for (start, end), name in self._definitions.items()
        ]
        statements = [(characters(start), characters(end), "") for start, end in self._statements]
        return Syntax(self._text, self._language.name, classes, _nested(definitions), _nested(statements))

    def _walk(self, tree: tree_sitter.Tree) -> None:
        roles, classes = _roles(self._language), self._classes
        cursor = tree.walk()
        path: list[tuple[int, tree_sitter.Node]] = []
        while True:
            node = cursor.node
            assert node is not None
            role = roles.get(node.kind_id, 0)
            start, end = node.start_byte, node.end_byte
            if role and start < end:
                if not role & _PLAIN:
                    classes[start:end] = bytes([role & _CLASS]) * (end - start)
                if role & (_DEFINITION | _VALUE):
                    self._define(role, node, path)
                if role & _NAMED and path and path[-1][0] & _BLOCK and role & _CLASS != TokenClass.COMMENT:
                    self._statements.append((start, end))
            if cursor.goto_first_child():
                path.append((role, node))
                continue
            if role & _PLAIN and end - start < _LONGEST_WORD and self._data[start:end].isalnum():
                classes[start:end] = bytes([TokenClass.KEYWORD]) * (end - start)  # true, this, int
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return
                path.pop()

    def _define(self, role: int, node: tree_sitter.Node, path: list[tuple[int, tree_sitter.Node]]) -> None:
        if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
            return  # "struct tool x", of a struct that is defined elsewhere
        name, outer = _name(node), node
        for above, carrier in reversed(path):
            if not above & _CARRIER:
                break
            name, outer = name or _name(carrier), carrier
        if role & _DEFINITION or outer is not node:
            self._definitions.setdefault((outer.start_byte, outer.end_byte), name)

    def _with_comments(self, start: int, classes: bytes) -> int:
        """Where the comments begin that stand right above a definition and end with their lines."""
        text = self._text
        line = text.rfind("\n", 0, start) + 1
        if text[line:start].strip():
            return start
        while line:
            above = text.rfind("\n", 0, line - 1) + 1
            content = text[above:line]
            first = above + len(content) - len(content.lstrip())
            if not content.strip() or classes[first] != TokenClass.COMMENT:
                break
            start, line = first, above
        return start


def _name(node: tree_sitter.Node) -> str:
    """The name that a node defines; empty if it has none."""
    named = node.child_by_field_name("name") or node.child_by_field_name("left") or node.child_by_field_name("key")
    inner = node
    while named is None:
        # In C, what is declared lies within pointers and parameters; a Rust impl is named by its type.
        deeper = inner.child_by_field_name("declarator")
        if deeper is None:
            named = inner if inner is not node else node.child_by_field_name("type")
            break
        inner = deeper
    return "" if named is None or named.text is None else named.text.decode("utf-8", "replace")


def _nested(parts: list[tuple[int, int, str]]) -> tuple[Part, ...]:
    """With depths, the outer before the inner, in the order of the text."""
    nested, ends = list[Part](), list[int]()
    for start, end, name in sorted(parts, key=lambda part: (part[0], -part[1])):
        while ends and ends[-1] <= start:
            ends.pop()
        nested.append(Part(start, end, len(ends), name))
        ends.append(end)
    return tuple(nested)


class _Characters:
    """From byte offsets to characters."""

    def __init__(self, data: bytes) -> None:
        self._ends, self._counts = list[int](), [0]
        for found in _CONTINUATION.finditer(data):
            self._ends.append(found.end())
            self._counts.append(self._counts[-1] + found.end() - found.start())

    def __call__(self, place: int) -> int:
        return place - self._counts[bisect_left(self._ends, place + 1)]
