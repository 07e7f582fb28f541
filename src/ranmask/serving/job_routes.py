"""The routes of jobs, ``/v1/jobs`` and what is below it, and their description."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from ranmask.data.rows import SUFFIXES
from ranmask.serving import answers, schemas
from ranmask.serving.api_docs import CURL, documented
from ranmask.serving.job_handlers import FORMATS, JSON_LINES, PARQUET, Jobs

_CHANGED = (401, 404)
_POSTED = (400, 401, 404, 408, 413, 415, 422, 429, 503)


def add_job_routes(app: FastAPI, jobs: Jobs) -> None:
    """Add the routes of jobs to an application."""
    whole, one = "/v1/jobs", "/v1/jobs/{id}"
    example = {"kind": "certify", "texts": [schemas.EXAMPLE]}
    body = {
        "required": True,
        "description": "A file of rows, or JSON with texts.",
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/JobTexts"},
                "examples": {"request": {"value": example}},
            },
            **{kind: {"schema": {"type": "string", "format": "binary"}} for kind in FORMATS},
        },
    }
    sending = "-H 'Content-Type: text/csv' --data-binary @rows.csv"
    app.add_api_route(
        whole,
        jobs.submit,
        methods=["POST"],
        status_code=201,
        responses=documented(answers.JobAnswer, *_POSTED, about="The job.", status=201),
        openapi_extra={
            "requestBody": body,
            "parameters": _parameters(),
            CURL: {"query": "?kind=certify&text_column=text", "arguments": sending},
        },
    )
    listed = documented(answers.JobList, *_CHANGED)
    app.add_api_route(whole, jobs.list, responses=listed, name="list_jobs")
    named = {"parameters": [_ID]}
    shown_job = documented(answers.JobAnswer, *_CHANGED)
    app.add_api_route(one, jobs.show, responses=shown_job, openapi_extra=named, name="show_job")
    app.add_api_route(
        one,
        jobs.delete,
        methods=["DELETE"],
        responses=documented(answers.JobAnswer, *_CHANGED, about="The job as it was."),
        openapi_extra=named,
        name="delete_job",
    )
    results = documented(answers.JobAnswer, *_CHANGED, 409, 422, 503)
    binary = {"schema": {"type": "string", "format": "binary"}}
    about = "The results; X-Job-Status says whether they are all."
    results[200] = {"description": about, "content": {JSON_LINES: binary, PARQUET: binary}}
    app.add_api_route(
        one + "/result",
        jobs.result,
        responses=results,
        response_class=StreamingResponse,
        openapi_extra={"parameters": [_ID, _FORMAT], CURL: {"arguments": "-o results.jsonl"}},
        name="job_result",
    )


_ID: dict[str, Any] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The id of a job.",
    "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    "example": "5f0c7d1e2a3b4c5d6e7f8091a2b3c4d5",
}
_FORMAT: dict[str, Any] = {
    "name": "format",
    "in": "query",
    "description": "What the results are sent as.",
    "schema": {"type": "string", "enum": ["jsonl", "parquet"], "default": "jsonl"},
    "example": "jsonl",
}


def job_schemas() -> dict[str, Any]:
    """What the description has besides what FastAPI finds: the JSON of a job."""
    found = schemas.JobTexts.model_json_schema(ref_template="#/components/schemas/{model}")
    own = found.pop("$defs", {})
    return {**own, "JobTexts": found}


def _parameters() -> list[dict[str, Any]]:
    """What may stand in the address of a job for a file."""
    found = schemas.JobFile.model_json_schema(ref_template="#/components/schemas/{model}")
    about = "The format of the file, where its Content-Type does not say it."
    kinds = {"type": "string", "enum": sorted(set(SUFFIXES.values()))}
    given: list[dict[str, Any]] = [
        {"name": "format", "description": about, "schema": kinds, "example": "csv"}
    ]
    for name, schema in found["properties"].items():
        schema = dict(schema)
        one: dict[str, Any] = {"name": name, "description": schema.pop("description")}
        one["example"] = schema.pop("examples")[0]
        kinds = schema.pop("anyOf", None)
        if kinds:  # an address cannot say null
            schema |= next(kind for kind in kinds if kind.get("type") != "null")
        schema.pop("default", None)
        if name == "options":
            one["content"] = {"application/json": {"schema": {"$ref": schema["$ref"]}}}
        else:
            one["schema"] = schema
        if schema.get("type") == "array":
            one |= {"style": "form", "explode": False}
        given.append(one)
    return [{"in": "query", "required": False, **one} for one in given]
