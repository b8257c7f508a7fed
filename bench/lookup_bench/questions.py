"""What guesses are counted on where no text is followed: questions, and gaps in files that any Python has."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pydoc_data.topics import topics

_QUESTIONS = (
    "What is recursion? Give an example.",
    "Explain the difference between TCP and UDP.",
    "Why is the sky blue?",
    "How do I undo the last commit in git?",
    "Explain what a closure is in JavaScript.",
    "What are the SOLID principles?",
    "How does garbage collection work in Python?",
    "Describe how a B-tree index speeds up a query.",
    "What is a race condition and how can it be avoided?",
    "Explain big-O notation to a beginner.",
    "What is the difference between a list and a tuple in Python?",
    "When should one use a NoSQL database?",
    "How does HTTPS keep data private?",
    "What does the CAP theorem say?",
    "Give five tips for writing good commit messages.",
    "Explain the borrow checker of Rust.",
    "Write a Python function that checks whether a string is a palindrome.",
    "Write a Python class for a bank account with deposit and withdraw.",
    "Write a JavaScript function that debounces another function.",
    "Write a SQL query that finds the three best paid employees of each department.",
    "Write a C function that reverses a linked list.",
    "Write a Python script that renames all files of a folder to lower case.",
    "Write a Go program with a worker pool.",
    "Write a React component that shows a counter.",
    "Write a regular expression for ISO dates and explain it.",
    "Write a Dockerfile for a Flask application.",
    "Write a Makefile for a small C project.",
    "Write pytest tests for a function that adds two numbers.",
    "Write a Java method that merges two sorted arrays.",
    "Write a binary search in Rust.",
    "Write a YAML file for a GitHub workflow that runs pytest.",
    "Write an HTML page with a form of three fields.",
    "List ten countries with their capitals as JSON.",
    "Make a table of the planets with their diameters.",
    "Write an e-mail to a colleague about a delayed release.",
    "Write a short story about a lighthouse keeper.",
    "Translate into French: The quick brown fox jumps over the lazy dog. It was not amused.",
    "List the steps to deploy a Python package to PyPI.",
    "Give a plan for learning Kubernetes in four weeks.",
    "Name the design patterns of the Gang of Four, a sentence each.",
)
_TOPICS = ("objects", "exceptions", "import", "strings", "numbers", "execmodel")
_EXPLAINED = (("shlex", "join"), ("textwrap", "dedent"), ("heapq", "merge"), ("colorsys", "rgb_to_hsv"))
_REWRITTEN = (("textwrap", "shorten"), ("textwrap", "indent"), ("colorsys", "rgb_to_hls"), ("shlex", "split"))
_LONG = 2500  # characters
_GAPPED = ("textwrap", "shlex", "colorsys", "heapq", "string", "fnmatch", "sched", "queue", "calendar", "csv")
_GAPS = 4  # of each file
_CHARACTERS = 60  # of a gap: the rest of a line, and mostly the next


def questions() -> list[str]:
    """Messages that are answered without a text being followed, or without the request saying which."""
    texts = [f"Summarize this text in one paragraph.\n\n{topics[topic][:_LONG]}" for topic in _TOPICS]
    explained = [f"What does this code do?\n\n{_fenced(*name)}" for name in _EXPLAINED]
    rewritten = [f"Rewrite this function so that it is easier to read.\n\n{_fenced(*name)}" for name in _REWRITTEN]
    return [*_QUESTIONS, *texts, *explained, *rewritten]


def gaps() -> Iterator[tuple[str, str]]:
    """What stands before and behind places in source files from which a little was taken."""
    for name in _GAPPED:
        text = inspect.getsource(importlib.import_module(name))
        for number in range(1, _GAPS + 1):
            place = text.index("\n", len(text) * number // (_GAPS + 1)) + 5
            yield text[:place], text[place + _CHARACTERS :]


def _fenced(module: str, name: str) -> str:
    return f"```python\n{inspect.getsource(getattr(importlib.import_module(module), name))[:_LONG]}```"
