from __future__ import annotations

import random
import re
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.text import document as document_module
from lookup_spec.text.document import MAX_BYTES, Document
from lookup_spec.text.languages import LANGUAGES, Language, language_named, language_of
from lookup_spec.text.syntax import Part, Syntax, TokenClass

SNIPPETS = {
    "a.py": (
        "import os\n\n\n# Adds.\n@cached\ndef add(a, b=1):\n    '''Sum.'''\n    return a + b  # here\n\n\n"
        "class Tool:\n    def run(self):\n        return add(1, 2)\n",
        ["add", "Tool", "Tool.run"],
    ),
    "a.js": (
        "import x from 'y';\n\n// Adds.\nexport const add = (a, b) => {\n\treturn `${a} and ${b}`;\n};\n\n"
        "class Tool {\n\trun() {\n\t\treturn 1;\n\t}\n}\nmodule.exports.go = function () {};\n",
        ["add", "Tool", "Tool.run", "module.exports.go"],
    ),
    "a.ts": (
        "/** A tool. */\nexport interface Tool {\n\trun(times: number): string;\n}\ntype Pair = [Tool, Tool];\n"
        "abstract class Saw implements Tool {\n\trun = (times: number) => 'r'.repeat(times);\n}\n",
        ["Tool", "Pair", "Saw", "Saw.run"],
    ),
    "a.tsx": ("export function View({name}: Props) {\n\treturn <b id='x'>Hi {name}</b>;\n}\n", ["View"]),
    "a.go": (
        "package main\n\n// Tool works.\ntype Tool struct {\n\tName string\n}\n\n"
        "func (t *Tool) Run(n int) error {\n\tif n > 0x10 {\n\t\treturn nil\n\t}\n\treturn t.Run(n + 1)\n}\n",
        ["Tool", "Run"],
    ),
    "a.rs": (
        "use std::fmt;\n\n/// A tool.\n#[derive(Debug)]\npub struct Tool {\n    name: String,\n}\n\n"
        "impl Tool {\n    fn run(&self) -> i32 {\n        let x = 'c';\n        1\n    }\n}\n",
        ["Tool", "Tool", "Tool.run"],
    ),
    "A.java": (
        "package a.b;\n\n/** A tool. */\npublic class Tool {\n  private int n = 1;\n\n  Tool(int n) {\n"
        '    this.n = n;\n  }\n\n  @Override\n  public String toString() {\n    return "n" + n;\n  }\n}\n',
        ["Tool", "Tool.Tool", "Tool.toString"],
    ),
    "a.c": (
        "#include <stdio.h>\n\nstruct tool {\n  int n;\n};\n\n/* Runs. */\nstatic int *run(struct tool *t)\n{\n"
        "  return &t->n;\n}\n",
        ["tool", "run"],
    ),
    "a.hpp": (
        "namespace tools {\ntemplate <typename T>\nclass Tool {\n public:\n  T run(int n) { return n + 1; }\n};\n}\n",
        ["tools", "tools.Tool", "tools.Tool.run"],
    ),
    "a.cs": (
        'namespace Tools {\n  class Tool {\n    [Obsolete]\n    public string Run(int n) => $"{n}";\n  }\n}\n',
        ["Tools", "Tools.Tool", "Tools.Tool.Run"],
    ),
    "a.rb": ("module Tools\n  class Tool\n    # Runs.\n    def run(n)\n      @n = n + 1\n    end\n  end\nend\n",
             ["Tools", "Tools.Tool", "Tools.Tool.run"]),
    "a.php": ("<?php\nclass Tool {\n  function run($n) {\n    return $n + 1;\n  }\n}\n", ["Tool", "Tool.run"]),
    "a.sh": ("# Runs.\nrun() {\n  local n=$1\n  echo \"$n\"\n}\nrun 2\n", ["run"]),
    "a.css": ("/* Tools. */\n.tool {\n  color: red;\n}\n", [""]),
    "a.html": ("<ul>\n  <li class='tool'>Saw</li>\n  <li>Axe</li>\n</ul>\n", []),
    "a.json": ('{\n  "name": "tool",\n  "sizes": [1, 2.5, true]\n}\n', []),
}  # fmt: skip


def syntax(path: str, text: str) -> Syntax:
    return Document(text, language_of(path)).syntax


def qualified(parts: tuple[Part, ...]) -> list[str]:
    """Names of definitions, each behind the names of those it lies in."""
    names, path = list[str](), list[str]()
    for part in parts:
        path[part.depth :] = [part.name]
        names.append(".".join(path))
    return names


def words(facts: Syntax, token_class: TokenClass) -> list[str]:
    return [
        facts.text[found.start() : found.end()]
        for found in re.finditer(re.escape(bytes([token_class])) + b"+", facts.classes)
    ]


def check(facts: Syntax) -> None:
    """Facts keep their contract."""
    size = len(facts.text)
    assert len(facts.classes) == size
    assert all(0 <= value <= max(TokenClass) for value in facts.classes)
    for parts in (facts.definitions, facts.statements):
        above: list[Part] = []
        for part in parts:
            assert 0 <= part.start < part.end <= size
            while above and above[-1].end <= part.start:
                above.pop()
            assert part.depth == len(above)
            assert not above or (above[-1].start <= part.start and part.end <= above[-1].end)
            above.append(part)


@pytest.mark.parametrize("path", SNIPPETS)
def test_definitions_are_found_with_their_names(path: str) -> None:
    """In every language, functions, classes and types are found, nested and named."""
    text, names = SNIPPETS[path]
    facts = syntax(path, text)
    check(facts)
    assert qualified(facts.definitions) == names
    assert facts.statements


def test_every_language_has_a_snippet() -> None:
    """No grammar goes untested."""
    assert {language_of(path) for path in SNIPPETS} == set(LANGUAGES)


@pytest.mark.parametrize(("path", "identifiers", "keywords", "others"), [
    ("a.py", "os cached add a b a b Tool run self add", "import def return class def return",
     "'''Sum.''' 1 1 2 # Adds. # here"),
    ("a.js", "x add a b a b Tool run module exports go", "import from export const return class return function",
     "'y' `  and  ` 1 // Adds."),
    ("a.ts", "Tool run times Pair Tool Tool Saw Tool run times repeat times",
     "export interface number string type abstract class implements number", "'r' /** A tool. */"),
    ("a.tsx", "View name Props b id name b", "export function return", "'x'"),
    ("a.go", "main Tool Name string t Tool Run n int error n t Run n", "package type struct func if return nil return",
     "0x10 1 // Tool works."),
    ("a.rs", "std fmt derive Debug Tool name String Tool run x", "use pub struct impl fn self i32 let",
     "'c' 1 /// A tool. #[ ( )]"),
    ("A.java", "a b Tool n Tool n n n Override String toString n",
     "package public class private int int this public return", '"n" 1 /** A tool. */'),
    ("a.c", "tool n run tool t t n", "struct int static int struct return", "<stdio.h> /* Runs. */"),
    ("a.hpp", "tools T Tool T run n n", "namespace template typename class public int return", "1"),
    ("a.cs", "Tools Tool Obsolete Run n n", "namespace class public string int", '$" "'),
    ("a.rb", "Tools Tool run n @n n", "module class def end end end", "1 # Runs."),
    ("a.php", "Tool run $n $n", "class function return", "1"),
    ("a.sh", "run n 1 echo n run", "local", '"$ " 2 # Runs.'),
    ("a.css", "tool color", "red", "/* Tools. */"),
    ("a.html", "ul li class li li li ul", "", "'tool'"),
    ("a.json", "", "true", '"name" "tool" "sizes" 1 2.5'),
])  # fmt: skip
def test_classes_of_characters(path: str, identifiers: str, keywords: str, others: str) -> None:
    """In every language, names, keywords, strings, numbers and comments are told apart."""
    facts = syntax(path, SNIPPETS[path][0])
    assert words(facts, TokenClass.IDENTIFIER) == identifiers.split()
    assert words(facts, TokenClass.KEYWORD) == keywords.split()
    found = [word for kind in (TokenClass.STRING, TokenClass.NUMBER, TokenClass.COMMENT) for word in words(facts, kind)]
    assert " ".join(found).split() == others.split()


def test_names_within_a_string_are_names() -> None:
    """What a template string or f-string computes is no text."""
    assert words(syntax("a.js", "x = `a ${b + 1} c`;"), TokenClass.IDENTIFIER) == ["x", "b"]
    assert words(syntax("a.py", "x = f'a {b + 1} c'"), TokenClass.IDENTIFIER) == ["x", "b"]


@pytest.mark.parametrize(
    ("path", "opening"),
    [("a.py", "# Adds."), ("a.js", "// Adds."), ("a.rs", "/// A tool."), ("a.c", "/* Runs. */"), ("A.java", "/** A")],
)
def test_a_definition_begins_with_the_comments_right_above(path: str, opening: str) -> None:
    """Comments, decorators and attributes belong to the definition below them."""
    facts = syntax(path, SNIPPETS[path][0])
    assert any(facts.text[part.start :].startswith(opening) for part in facts.definitions)


def test_a_comment_behind_code_or_a_blank_line_is_not_taken() -> None:
    """A comment that ends a line of code, or stands apart, belongs to no definition."""
    facts = syntax("a.py", "# licence\n\nx = 1  # one\ndef f():\n    pass\n")
    assert facts.text[facts.definitions[0].start :].startswith("def f")


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_positions_count_characters(ends: str) -> None:
    """Neither letters of several bytes, nor those outside the basic plane, nor CRLF shift what follows."""
    plain = "a = 'x'\ndef f(b):\n    return 'y', b\n\n# z\n"
    odd = plain.replace("'x'", "'héé 👩‍👩‍👧 日本'").replace("z", "ź𝒛").replace("\n", ends)
    facts = syntax("a.py", odd)
    check(facts)
    assert words(facts, TokenClass.IDENTIFIER) == ["a", "f", "b", "b"]
    assert words(facts, TokenClass.STRING) == ["'héé 👩‍👩‍👧 日本'", "'y'"]
    assert "".join(words(facts, TokenClass.COMMENT)).rstrip() == "# ź𝒛"
    (part,) = facts.definitions
    assert odd[part.start : part.end].startswith("def f")
    assert odd[part.start : part.end].endswith(", b")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.xyz", "def f(): pass"),
        ("noname", "def f(): pass"),
        ("a.py", "def f():\n    x = '\0'\n"),
        ("a.py", "x = 1\n" * (MAX_BYTES // 6 + 1)),
    ],
    ids=["unknown suffix", "no suffix", "binary", "huge"],
)
def test_texts_that_are_not_parsed(path: str, text: str) -> None:
    """Of unknown languages, binary and huge texts nothing is known, and nothing is said about it."""
    assert syntax(path, text) == Syntax.unknown(text)


def test_half_a_surrogate_pair_is_a_character_like_others() -> None:
    """A text that is no valid Unicode is read all the same."""
    facts = syntax("a.py", "a = '\ud83d'\nb = 1\n")
    check(facts)
    assert words(facts, TokenClass.IDENTIFIER) == ["a", "b"]


def test_a_parse_that_takes_too_long_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that costs a parser the square of its length is left alone."""
    text = "".join(random.Random(0).choices("abc(){}[]<>;:\"'=+-*/ \n", k=100_000))
    monkeypatch.setattr(document_module, "_SECONDS", 0.0)
    monkeypatch.setattr(document_module, "_SECONDS_PER_BYTE", 0.0)
    assert syntax("a.js", text) == Syntax.unknown(text)


def test_what_stands_around_an_error_is_read() -> None:
    """A syntax error hides only itself."""
    facts = syntax("a.py", "def f():\n    return 1\n\ndef g(:\n    return )2\n\ndef h():\n    return 3\n")
    check(facts)
    assert {"f", "h"} <= {part.name for part in facts.definitions}


@pytest.mark.parametrize(
    ("name", "language"),
    [("py", "python"), ("TypeScriptReact", "tsx"), ("c++", "cpp"), ("shellscript", "bash"), (" go ", "go")],
)
def test_languages_have_several_names(name: str, language: str) -> None:
    """A language is found by the names that fences and editors use."""
    found = language_named(name)
    assert found is not None
    assert found.name == language


@pytest.mark.parametrize(
    ("path", "language"),
    [("src\\x.PY", "python"), ("/a/b.c/x.tsx", "tsx"), ("x.h", "cpp"), ("Makefile", None), ("", None), (".py", None)],
)
def test_languages_of_files(path: str, language: str | None) -> None:
    """A file's language is told by its suffix, on every platform."""
    found = language_of(path)
    assert (found and found.name) == language


def test_names_and_suffixes_are_unambiguous() -> None:
    """No two languages share a suffix or a name."""
    for field in ("suffixes", "aliases"):
        assert field in {item.name for item in fields(Language)}
        everything = [name for language in LANGUAGES for name in getattr(language, field)]
        assert len(everything) == len(set(everything))


LETTERS = st.text(alphabet="ab1 (){}[]:;'\"`#/*\n\té👩", max_size=6)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(list(SNIPPETS)))
def test_editing_gives_what_parsing_anew_gives(data: st.DataObject, path: str) -> None:
    """After any changes, an edited document is equal to a fresh one, and keeps the contract."""
    language = language_of(path)
    document = Document(SNIPPETS[path][0], language)
    for _ in range(data.draw(st.integers(1, 4))):
        text = document.text
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 30)))
        copied = data.draw(st.integers(0, len(text)))
        new = data.draw(LETTERS | st.just(text[copied : copied + 40]))
        before = document.syntax
        document, old = document.edited(text[:start] + new + text[end:]), document
        assert document.syntax == Document(document.text, language).syntax
        assert old.syntax == before == Document(text, language).syntax
        check(document.syntax)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(list(SNIPPETS)))
def test_whole_lines_edited(data: st.DataObject, path: str) -> None:
    """The same for changes of whole lines, after which most texts are still correct."""
    language = language_of(path)
    document = Document(SNIPPETS[path][0] * 3, language)
    for _ in range(3):
        lines = document.text.split("\n")
        place = data.draw(st.integers(0, len(lines)))
        lines[place : place + data.draw(st.integers(0, 2))] = data.draw(st.lists(st.sampled_from(lines), max_size=2))
        document = document.edited("\n".join(lines))
        assert document.syntax == Document(document.text, language).syntax


MODULE = SNIPPETS["a.py"][0]


def around(text: str, selected: str, max_size: int, path: str = "a.py") -> str | None:
    start = text.index(selected)
    found = syntax(path, text).enclosing(start, start + len(selected), max_size)
    return None if found is None else text[found[0] : found[1]]


def test_the_enclosing_definition() -> None:
    """A stretch within a function gives the function with its comments, in whole lines."""
    add = MODULE[MODULE.index("# Adds") : MODULE.index("\n\n\nclass") + 1]
    assert around(MODULE, "a + b", 1000) == add
    assert around(MODULE, "add(1", 1000) == "    def run(self):\n        return add(1, 2)\n"
    assert around(MODULE, "class Tool", 1000) == MODULE[MODULE.index("class Tool") :]


def test_a_stretch_over_neighbours_gives_both() -> None:
    """Two functions that are touched are given together; space around the stretch does not count."""
    text = "def f():\n    a\n\n\ndef g():\n    b\n\n\ndef h():\n    c\n"
    assert around(text, "a\n\n\ndef g():\n    b\n\n\n", 1000) == text[: text.index("\n\ndef h")]
    assert around(text, "\n\n\ndef h", 1000) == "def h():\n    c\n"


def test_statements_where_the_definition_is_too_long() -> None:
    """Of a function that is too long, the largest run of statements that is not."""
    inner = "        if a:\n            b\n            c\n"
    text = f"def f():\n    for a in x:\n{inner}" + "    y\n" * 100
    assert around(text, "c\n", 100) == f"    for a in x:\n{inner}"
    assert around(text, "c\n", len(inner)) == inner
    assert around(text, "b\n            c", len(inner) - 1) == "            b\n            c\n"
    assert around(text, "c\n", 15) == "            c\n"
    assert around(text, "c\n", 5) is None


def test_lines_where_nothing_is_known() -> None:
    """Without syntax, the lines themselves."""
    assert around("one\ntwo three\nfour", "three", 100, "a.txt") == "two three\n"
    assert around("one\ntwo three\nfour", "our", 100, "a.txt") == "four"


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (0, 1000)])
def test_no_stretch_of_the_text(start: int, end: int) -> None:
    """Positions outside the text are refused."""
    with pytest.raises(ValueError, match="is no stretch of a text of 3 characters"):
        syntax("a.py", "abc").enclosing(start, end, 10)


@settings(deadline=None)
@given(st.sampled_from(list(SNIPPETS)), st.data(), st.integers(1, 200))
def test_what_is_enclosing_covers_in_whole_lines(path: str, data: st.DataObject, most: int) -> None:
    """Whatever the stretch: covered but for space at its ends, in whole lines, not longer than allowed."""
    text = SNIPPETS[path][0] * 2
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    found = syntax(path, text).enclosing(start, end, most)
    inner = text[start:end]
    if found is None:
        assert max(map(len, inner.split("\n"))) > 0 or not inner.strip()
        return
    low, high = found
    assert high - low <= most
    assert low <= start + len(inner) - len(inner.lstrip()) or not inner.strip()
    assert high >= start + len(inner.rstrip())
    assert low == 0 or text[low - 1] == "\n"
    assert high == len(text) or text[high - 1] == "\n"


@settings(deadline=None)
@given(st.sampled_from(list(SNIPPETS)), st.integers(1, 300))
def test_pieces_cover_the_text(path: str, most: int) -> None:
    """The pieces of any text are in order, without gap or overlap, and none is too long."""
    text = SNIPPETS[path][0] * 3
    pieces = syntax(path, text).split(most)
    assert "".join(text[start:end] for start, end in pieces) == text
    assert all(0 < end - start <= most for start, end in pieces)


def test_cuts_lie_before_definitions() -> None:
    """A text is cut before functions, before methods where a class is too long, and before lines at worst."""
    text = "import os\n\n\ndef f():\n    a\n\n\nclass C:\n    def g(self):\n        b\n\n    def h(self):\n        c\n"
    facts = syntax("a.py", text)
    pieces = [text[start:end] for start, end in facts.split(60)]
    assert [piece.split("\n")[0] for piece in pieces] == ["import os", "class C:", "    def h(self):"]
    assert syntax("a.txt", "aa\nbb\ncc\n").split(7) == [(0, 6), (6, 9)]


def test_pieces_of_no_size_are_refused() -> None:
    """At least one character fits into a piece."""
    with pytest.raises(ValueError, match="max_size is 0"):
        syntax("a.py", "abc").split(0)
