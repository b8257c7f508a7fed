"""Every method of OpenAI's client that is offered, with all that it may be given, in each form of reply.

The client checks what it gets against its own types.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import reduce
from pathlib import Path
from typing import Any

import openai
import pytest
from lookup_server.settings import Settings
from openai.types import Batch, Completion, FileDeleted, FileObject, Model
from openai.types.chat import ChatCompletion

from lookup_spec.model.load import LoadedModel
from tests.server.tiny_service import SlowEngine, running

CHAT: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "developer", "content": "be brief", "name": "me"}, {"role": "user", "content": "say add"}],
    "max_completion_tokens": 4,
    "frequency_penalty": -0.5,
    "presence_penalty": 0.5,
    "logit_bias": {"5": 1},
    "logprobs": True,
    "top_logprobs": 2,
    "metadata": {"a": "b"},
    "modalities": ["text"],
    "n": 1,
    "prediction": {"type": "content", "content": "def add"},
    "prompt_cache_key": "x",
    "response_format": {"type": "text"},
    "safety_identifier": "x",
    "seed": -1,
    "service_tier": "auto",
    "stop": ["@@"],
    "store": False,
    "temperature": 1,
    "top_p": 0.9,
    "user": "x",
}
TEXT: dict[str, Any] = {
    "model": "tiny",
    "prompt": "def add",
    "best_of": 1,
    "echo": True,
    "frequency_penalty": -0.5,
    "logit_bias": {"5": 1},
    "max_tokens": 4,
    "n": 1,
    "presence_penalty": 0.5,
    "seed": 0,
    "stop": "@@",
    "temperature": 1,
    "top_p": 0.9,
    "user": "x",
}
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}}
EXPIRY: dict[str, Any] = {"anchor": "created_at", "seconds": 3600}
LINE = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x", "max_tokens": 60}}
LINES = "\n".join(json.dumps({**LINE, "custom_id": str(number)}) for number in range(200)).encode()


@pytest.fixture(scope="module")
def url(loaded: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("kept")
    settings = Settings(batch_folder=folder, served_names=("tiny",), max_sessions=2)
    with running(SlowEngine(loaded, max_sessions=2), settings) as one:
        yield f"{one.url}/v1"


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def told(client: Any, form: str, method: str, *arguments: Any, **options: Any) -> Any:
    """What a method gives, asked for in one form of reply; of a stream, all of its chunks."""
    *way, name = method.split(".")
    resource = reduce(getattr, way, client)
    async with AsyncExitStack() as stack:
        if form == "parsed":
            value = await settled(getattr(resource, name)(*arguments, **options))
        elif form == "raw":
            value = (await settled(getattr(resource.with_raw_response, name)(*arguments, **options))).parse()
        else:
            context = getattr(resource.with_streaming_response, name)(*arguments, **options)
            if hasattr(context, "__aenter__"):
                value = await (await stack.enter_async_context(context)).parse()
            else:
                value = stack.enter_context(context).parse()
        if options.get("stream"):
            return [chunk async for chunk in value] if hasattr(value, "__aiter__") else list(value)
        return value


@pytest.mark.parametrize("form", ["parsed", "raw", "streaming"])
@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
def test_every_method_gives_what_its_type_says(url: str, kind: Any, form: str) -> None:
    async def all_of_them() -> None:
        client = kind(base_url=url, api_key="x", max_retries=0, _strict_response_validation=True)
        # Its type has no chunk of a text completion but the last: OpenAI's own say null as ours do.
        lenient = kind(base_url=url, api_key="x", max_retries=0)

        async def ask(method: str, *arguments: Any, **options: Any) -> Any:
            return await told(client, form, method, *arguments, **options)

        assert isinstance(await ask("models.retrieve", "tiny"), Model)
        assert [one.id for one in (await ask("models.list")).data] == ["tiny"]
        for method, options, whole, streaming in (
            ("chat.completions.create", CHAT, ChatCompletion, client),
            ("completions.create", TEXT, Completion, lenient),
        ):
            assert isinstance(await ask(method, **options), whole)
            *_, last = await told(streaming, form, method, **options, **STREAM)
            assert last.usage.completion_tokens == 4

        files = [
            await ask("files.create", file=LINES, purpose="batch", expires_after=EXPIRY),
            await ask("files.create", file=b"", purpose="user_data"),
        ]
        assert all(isinstance(file, FileObject) for file in files)
        used, unused = (file.id for file in files)
        assert await ask("files.retrieve", used) == files[0]
        page = await ask("files.list", after=used, limit=1, order="asc", purpose="user_data")
        assert [one.id for one in page.data] == [unused]
        await ask("files.content", used)
        assert isinstance(await ask("files.delete", unused), FileDeleted)
        more = {"metadata": {"a": "b"}, "output_expires_after": EXPIRY}
        asked = {"completion_window": "24h", "endpoint": "/v1/completions", "input_file_id": used, **more}
        batch = await ask("batches.create", **asked)
        assert isinstance(batch, Batch)
        assert (await ask("batches.retrieve", batch.id)).id == batch.id
        assert [one.id for one in (await ask("batches.list", limit=1)).data] == [batch.id]
        assert (await ask("batches.cancel", batch.id)).status in ("cancelling", "cancelled")
        for one in (client, lenient):
            await settled(one.close())

    asyncio.run(all_of_them())
