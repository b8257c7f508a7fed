"""What the API description says about bodies."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


def documented(*models: type[BaseModel]) -> dict[str, Any]:
    """Tells the framework a body's form, or forms, which it does not see: bodies are read by hand, within limits."""
    # The id makes the schema's references start from the schema itself.
    schemas = [{"$id": model.__name__, **model.model_json_schema()} for model in models]
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
