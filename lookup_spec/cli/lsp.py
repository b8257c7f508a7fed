"""``lookup-spec lsp``: a language server on stdin and stdout."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from lookup_spec.errors import LookupSpecError


def lsp(
    url: Annotated[
        str, typer.Option(envvar="LOOKUP_SPEC_URL", help="Where the service listens.")
    ] = "http://127.0.0.1:8012",
    api_key: Annotated[
        str,
        typer.Option(envvar="LOOKUP_SPEC_API_KEY", help="The service's key, if it wants one.", show_default=False),
    ] = "",
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell on stderr what goes on.")] = False,
) -> None:
    """Brings a running service to editors that speak the Language Server Protocol, on stdin and stdout.

    Inline completions fill in at the cursor; the command lookup-spec.edit changes a document after an instruction.
    """
    try:
        from lookup_spec.lsp.server import Server
        from lookup_spec.lsp.service import Service
    except ModuleNotFoundError as error:
        raise LookupSpecError(
            f"The language server needs the package {error.name}; install it with: pip install 'lookup-spec[lsp]'"
        ) from error
    if not url.startswith(("http://", "https://")):
        raise LookupSpecError(f"The service's address {url!r} is not one; give one like http://127.0.0.1:8012.")
    # pygls logs what a client is told as an error, with a traceback.
    level = logging.INFO if verbose else logging.CRITICAL
    logging.basicConfig(level=level, format="%(name)s: %(message)s", stream=sys.stderr)
    Server(Service(url, api_key)).start_io()
