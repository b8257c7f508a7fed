"""What the API description says about bodies."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


def documented(model: type[BaseModel]) -> dict[str, Any]:
    """Tells the framework a body's form, which it does not see: bodies are read by hand, within limits."""
    # The id makes the schema's references start from the schema itself.
    schema = {"$id": model.__name__, **model.model_json_schema()}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
