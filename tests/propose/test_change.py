from __future__ import annotations

from itertools import pairwise

import pytest

from lookup_spec.propose.change import Argument, Change, Indent, Replacement
from lookup_spec.propose.names import Rename, Restyle


def edited(text: str, change: Change) -> str:
    """The text with all edits of a change applied, the last one first."""
    edits = change.edits(text)
    assert all(one.end <= other.start for one, other in pairwise(edits))
    for edit in reversed(edits):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        (Rename("get_user", "fetch_account"), "get_user(1)", "fetch_account(1)"),
        (Rename("getUser", "fetchAccount"), "get_user GET_USER", "fetch_account FETCH_ACCOUNT"),
        (Rename("get_user", "fetch_it"), "GetUser getUser test_get_user", "FetchIt fetchIt test_fetch_it"),
        (Rename("user", "account"), "User userName USER_ID user2", "Account accountName ACCOUNT_ID user2"),
        (Rename("user", "account"), "superuser users", "superuser users"),
        (Rename("x", "y"), "x max_x X", "y max_x X"),
        (Rename("old", "$odd"), "old Old", "$odd Old"),
        (Restyle(camel=True), "get_user = _my_own(a_b2, X_Y)", "getUser = _myOwn(aB2, X_Y)"),
        (Restyle(camel=False), "getUser = _myOwn(HTTPServer)", "get_user = _my_own(HTTPServer)"),
        (Indent("  ", "    "), "  a\n    b\n\nc\n", "    a\n      b\n\n  c\n"),
        (Indent("    ", "  "), "    a\n      b\nc\n", "  a\n    b\nc\n"),
        (Indent("    ", "\t"), "    a\n        b\n      c\nd\n", "\ta\n\t\tb\n\t  c\nd\n"),
        (Indent("    ", "  ", scaled=True), "    a\n        b\n", "  a\n    b\n"),
        (Replacement("print", "logger.info", right=r"\("), "print(x); printer(y)", "logger.info(x); printer(y)"),
        (Replacement("'", '"'), "f('a', 'b')", 'f("a", "b")'),
        (Replacement(".unwrap()", "?"), "a.unwrap().b(c.unwrap())", "a?.b(c?)"),
        (Replacement(";", "", r"\)", r"\n"), "f();\ng() ;\n", "f()\ng() ;\n"),
        (Argument("f", "ctx", first=False), "f(a, g(b)) + f() + ff(c)", "f(a, g(b), ctx) + f(ctx) + ff(c)"),
        (Argument("f", "ctx", first=True), "f(a, f()) + f(\n)", "f(ctx, a, f(ctx)) + f(\n)"),
        (Argument("f", "ctx", first=False), "f(f(a))", "f(f(a, ctx), ctx)"),
    ],
)  # fmt: skip
def test_a_change_edits_its_places_and_no_others(change: Change, before: str, after: str) -> None:
    """Each kind of change makes of a text what a careful user would."""
    assert edited(before, change) == after
    assert change.edits("") == []


def test_two_sightings_tell_scaled_indentation_from_shifted() -> None:
    """4 to 2 alone may be two less; 8 to 4 as well means half."""
    assert Indent("    ", "  ").after(None) == Indent("    ", "  ")
    assert Indent(" " * 8, " " * 4).after(Indent(" " * 4, " " * 2)) == Indent(" " * 8, " " * 4, scaled=True)
    assert Indent(" " * 8, " " * 6).after(Indent(" " * 4, " " * 2)) == Indent(" " * 8, " " * 6)
