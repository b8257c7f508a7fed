from __future__ import annotations

import pytest

from lookup_spec.propose.announced import announced
from lookup_spec.propose.change import Argument, Change, Indent, Replacement
from lookup_spec.propose.names import Rename, Restyle
from lookup_spec.propose.noticed import Difference, noticed, reindented


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("Rename get_user to fetch_user everywhere.", [Rename("get_user", "fetch_user")]),
        ("replace `foo` with `bar`, please", [Rename("foo", "bar")]),
        ("old -> fresh, and a => b", [Rename("old", "fresh"), Rename("a", "b")]),
        ("Replace `print` by `logger.info`.", [Replacement("print", "logger.info")]),
        ("use `self.check` instead of `assertTrue`", [Replacement("assertTrue", "self.check")]),
        ("The name `foo` is ugly; call it bar.", [Rename("foo", "bar")]),
        ("Use fetch instead of get.", [Rename("get", "fetch")]),
        ("Use double quotes.", [Replacement("'", '"')]),
        ("switch to single-quoted strings", [Replacement('"', "'")]),
        ("Convert the names to camelCase", [Restyle(camel=True)]),
        ("Replace every old with fresh and this by that", [Rename("old", "fresh"), Rename("this", "that")]),
        ("Fix the bug", []),
        ("Update requests to version 2. Pass it as text", []),
        ("x to x", []),
        ("change 5 to 6", []),
    ],
)
def test_announced_changes(message: str, changes: list[Change]) -> None:
    """The usual ways of asking for a change are understood; numbers are no names."""
    assert announced(message) == changes


@pytest.mark.parametrize(
    ("difference", "changes"),
    [
        (Difference("x = ", "get", "fetch", "_user(1)"), [Rename("get_user", "fetch_user")]),
        (Difference("a.", "b", "bb", ".c"), [Rename("b", "bb")]),
        (Difference("a.", "b_c", "bC", ".c"), [Rename("b_c", "bC"), Restyle(camel=True)]),
        (Difference("f(x", "", ", y", ")\n"), [Argument("f", "y", first=False)]),
        (Difference("g(f(", "", "y", "))\n"), [Argument("f", "y", first=False)]),
        (Difference("f(", "", "y, ", "x)\n"), [Argument("f", "y", first=True)]),
        (Difference("x = ", "", "await ", "f(1)"), [Replacement("f", "await f", r"\ ", r"\(", "x")]),
        (Difference("f(", "'", '"', "a')"), [Replacement("'", '"', head="f")]),
        (Difference("  ", "print", "log.info", "(x)"), [Replacement("print", "log.info", right=r"\(", head="print")]),
        (Difference("y = x", ".unwrap()", "?", ";\n"), [Replacement(".unwrap()", "?", head="y")]),
        (Difference("f()", ";", "", "\n"), [Replacement(";", "", r"\)", "\\\n", "f")]),
        (Difference("def f(x", "", ": int", "):\n"), [Replacement("x", "x: int", right=r"\)", head="def")]),
        (Difference("a", " b", " c", ""), []),
        (Difference("", "same", "same", " "), []),
        (Difference("a ", "b\n", "c\n  d\n", "e "), []),
        (Difference("", "", "", ""), []),
    ],
)
def test_noticed_changes(difference: Difference, changes: list[Change]) -> None:
    """One difference tells what may change elsewhere; one of several lines, or at the end of what is known, nothing."""
    assert noticed(difference) == changes


def test_reindented_lines() -> None:
    """Lines that differ in their indentation alone tell how it changed; a bracket alone tells nothing."""
    assert reindented("  return x", "      return x") == Indent("  ", "      ")
    assert reindented("\treturn x", "return x") == Indent("\t", "")
    assert reindented("  return x", "  return x") is None
    assert reindented("  return x", "    return y") is None
    assert reindented("  }", "    }") is None
