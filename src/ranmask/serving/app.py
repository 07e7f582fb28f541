"""The service as an ASGI application: its routes, and what each answers.

CORS -> request log (ids, metrics, errors) -> authentication -> body limits -> questions, routes
questions -> RequestBatcher (short requests, together) or Workers (long ones, each by itself)
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from ranmask import __version__
from ranmask.errors import RanmaskError, TextError
from ranmask.serving import answers, schemas
from ranmask.serving.api_docs import describe, documentation, documented
from ranmask.serving.auth import FACTS, AuthMiddleware
from ranmask.serving.classifying import MODEL_FAILED, Classify, classified, texts_at_once
from ranmask.serving.context import RequestContext
from ranmask.serving.detecting import DETECT, WORD_VALUES
from ranmask.serving.dispatch import DispatchMiddleware, Json, Question
from ranmask.serving.job_handlers import Jobs
from ranmask.serving.job_routes import add_job_routes, job_schemas
from ranmask.serving.keys import Keys, RateLimits, read_keys
from ranmask.serving.limits import BodyLimitsMiddleware
from ranmask.serving.pages import page_files
from ranmask.serving.problems import DeadlinePassed, Problem, invalid
from ranmask.serving.registry import ModelRegistry, models_of
from ranmask.serving.request_log import RequestLogMiddleware
from ranmask.serving.settings import ServiceSettings
from ranmask.serving.sizing import ReadText, read_texts
from ranmask.serving.telemetry import CONTENT_TYPE, SHARED_FIGURES, Telemetry, log
from ranmask.serving.workers import SHORT_COPIES, Answer, RequestBatcher, Workers
from ranmask.words import Document

_MOST_OF_TIME = 0.8  # of the deadline: attacks end by then, with what they found
_POSTED = (400, 401, 404, 408, 413, 415, 422, 429, 503, 504)

_TEXT = {"type": "string", "description": "Lines of metrics.", "examples": ["ranmask_texts 1"]}


@dataclass(frozen=True)
class _Asked:
    """A question within all limits; ``copies`` says how long it is."""

    model: str
    options: Mapping[str, Any]
    texts: Sequence[ReadText]
    copies: int

    def only_text(self) -> Document:
        """The text of a question about one; raises `TextError` where it cannot be used."""
        [text] = self.texts
        if isinstance(text, TextError):
            raise text
        return text


class Service:
    """The handlers of the routes.

    ``draining`` True: ``/readyz`` says no.  ``closing`` True: an answer is the last one on its
    connection.
    """

    def __init__(self, host: ModelRegistry, settings: ServiceSettings) -> None:
        self.draining = False
        self.closing = False
        self.keys = Keys(read_keys(settings))
        self.telemetry = Telemetry(
            lambda: {name: host.figures(name) for name in host.names()},
            lambda: self.workers.taken,
        )
        self._host = host
        self._settings = settings
        self._seconds = _MOST_OF_TIME * settings.deadline_seconds
        self._open()

    def _open(self) -> None:
        settings = self._settings
        self.workers = Workers(
            settings.threads, settings.waiting_requests, settings.deadline_seconds
        )
        self.gathering = RequestBatcher(self.workers, settings.threads)

    def reload(self) -> Callable[[], None]:
        """Read keys and models again; where one cannot be used, all stay as they are.

        Returns what ends the models that were replaced: see `ModelRegistry.reload`.
        """
        try:
            keys, models = read_keys(self._settings), models_of(self._settings)
            close_replaced = self._host.reload(models)
        except (RanmaskError, OSError) as error:
            self.telemetry.reloaded("failed")
            log("reload failed", logging.ERROR, reason=str(error))
            return lambda: None
        self.keys.all = tuple(keys)
        self.telemetry.reloaded("done")
        log("reloaded", models=list(models), keys=[key.name for key in keys])
        return close_replaced

    def close(self) -> None:
        """Wait for what runs, and end all threads.  An application may be started again."""
        self.gathering.close()
        self.workers.close()
        self._open()

    async def predict(self, request: Request, body: schemas.Texts) -> Response:
        """The label of each text, without a certificate."""
        return await self._classified(request, body, "predict")

    async def certify(self, request: Request, body: schemas.Texts) -> Response:
        """The label of each text, and how many of its words can be changed without effect."""
        return await self._classified(request, body, "certify")

    async def detect(self, request: Request, body: schemas.ToDetect) -> Response:
        """Whether each text is flagged by a detector, and what is proved of the flag."""
        return await self._classified(request, body, DETECT)

    async def explain(self, request: Request, body: schemas.ExplainQuestion) -> Response:
        """The certificate of one text, copies that vote, and the margin that changes leave."""
        from ranmask.serving.explaining import explain

        asked = self._asked(request, body, "explain")
        text = asked.only_text()

        def explained(context: RequestContext) -> dict[str, Any]:
            smoothed = self._host.smoothed(asked.model, context, **asked.options)
            return explain(smoothed, text, body.copies)

        answer = await self.workers.run(request.receive, explained)
        return Json({"model": asked.model, **answer})

    async def attack(self, request: Request, body: schemas.AttackQuestion) -> Response:
        """Try to change the label of one text by changing its words."""
        from ranmask.serving.explaining import attack_once

        [text] = schemas.all_texts(body)
        asked = self._asked(request, body, "attack")
        asked.only_text()

        def attacked(context: RequestContext) -> dict[str, Any]:
            smoothed = self._host.smoothed(asked.model, context, **asked.options)
            label = body.label_id
            if label is None:
                label = smoothed.predict([text])[0].label_id
            outcome = attack_once(smoothed, text, label, body.budget, self._seconds)
            labels = None if smoothed.labels is None else list(smoothed.labels)
            return {**outcome.to_dict(), "labels": labels}

        answer = await self.workers.run(request.receive, attacked)
        return Json({"model": asked.model, **answer})

    async def models(self) -> Response:
        """The models that are served, and how each is smoothed unless asked otherwise."""
        names = self._host.names()
        cards = [{"name": name, **self._host.about(name)} for name in names]
        settings = self._settings
        limits = {
            "texts": settings.most_texts,
            "words": settings.most_words,
            "body_bytes": settings.body_bytes,
            "job_bytes": None if settings.jobs is None else settings.job_bytes,
            "job_rows": None if settings.jobs is None else settings.job_rows,
        }
        return Json({"default": names[0], "models": cards, "limits": limits})

    async def healthz(self) -> Response:
        """Whether the process is alive."""
        return Json({"status": "ok"})

    async def readyz(self) -> Response:
        """Whether the service takes requests; it does once it listens, until it is told to end."""
        if self.draining:
            raise Problem(503, "closing", "the service is shutting down")
        return Json({"status": "ready"})

    async def metrics(self) -> Response:
        """Counts and times, as Prometheus reads them."""
        content = await asyncio.to_thread(self.telemetry.exposition)  # it reads files
        return Response(content, media_type=CONTENT_TYPE)

    # -- what questions share ------------------------------------------------------------------

    async def _classified(self, request: Request, body: schemas.AnyTexts, command: str) -> Response:
        asked = self._asked(request, body, command)
        # Not `asked`: others who ask the same must not keep these texts alive.
        model, options = asked.model, asked.options

        def answer(
            texts: Sequence[ReadText], context: RequestContext, done: Answer | None = None
        ) -> Answer:
            classify = self._classify(command, model, options, context)
            return classified(classify, texts, context, done, at_once)

        at_once = texts_at_once(len(asked.texts), asked.copies)
        unfinished: list[int] = []
        if asked.copies <= SHORT_COPIES:
            question = (command, model, frozenset(options.items()))
            results = await self.gathering.run(
                request.receive, question, answer, asked.texts, asked.copies
            )
        else:
            done: Answer = []
            try:
                results = await self.workers.run(
                    request.receive, lambda context: answer(asked.texts, context, done)
                )
            except DeadlinePassed as late:
                unfinished = list(range(len(done), len(asked.texts)))
                if not done or not unfinished:
                    raise
                results = [*done, *({"error": late.message} for _ in unfinished)]
        failed = sum("error" in result for result in results)
        self.telemetry.classified(model, len(results) - failed, failed)
        if failed == len(results):
            if any(result["error"] == MODEL_FAILED for result in results):
                raise Problem(500, "internal", MODEL_FAILED)
            raise Problem(422, "unusable_text", f"no text can be used: {results[0]['error']}")
        more = {"unfinished": unfinished} if unfinished else {}
        return Json({"model": model, "results": results, **more})

    def _classify(
        self, command: str, model: str, options: Mapping[str, Any], context: RequestContext
    ) -> Classify:
        """What classifies the texts of a request."""
        if command == DETECT:
            detector = self._host.detector(model, context)
            return detector.explain if options.get(WORD_VALUES) else detector.detect
        smoothed = self._host.smoothed(model, context, **options)
        if command == "certify":
            smoothed.check_certifiable()
        classify: Classify = getattr(smoothed, command)
        return classify

    def _asked(self, request: Request, body: schemas.AnyTexts, command: str) -> _Asked:
        """What a request asks for, within all limits."""
        sent, options = schemas.all_texts(body), body.given()
        texts = read_texts(sent, self._settings.most_texts, self._settings.most_words)
        facts = request.scope[FACTS]
        if self._settings.log_texts:
            facts["sent"] = sent
        model = self._host.answering(command, body.model)
        facts.update(model=model, texts=len(texts))
        return _Asked(model, options, texts, self._host.copies(model, texts, **options))


def create_app(host: ModelRegistry, settings: ServiceSettings) -> FastAPI:
    """The application over models that are loaded; ``app.state.service`` is its `Service`."""
    service = Service(host, settings)
    jobs = Jobs(host, settings, lambda: service.workers.busy, service.telemetry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with jobs.running():
            yield
        service.close()

    app = FastAPI(
        title="ranmask",
        version=__version__,
        description="Labels and flags of texts, and proofs of how many words can be changed "
        "without effect.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,  # it would send callers to whatever Host they name
        lifespan=lifespan,
    )
    app.state.service = service
    _add_routes(app, service)
    add_job_routes(app, jobs)
    description = describe(app, settings, job_schemas())
    pages = {
        **page_files(),
        "/docs": documentation(description, settings),
        "/openapi.json": (bytes(Json(description).body), "application/json"),
    }
    for path, (content, kind) in pages.items():
        page = partial(_page, content, kind)
        app.add_api_route(path, page, include_in_schema=False, response_model=None)
    routes = frozenset(getattr(route, "path", "") for route in app.routes)
    # The last one added is the outermost.
    app.add_middleware(DispatchMiddleware, questions=_questions(service))
    app.add_middleware(BodyLimitsMiddleware, settings=settings)
    rates = RateLimits(os.environ.get(SHARED_FIGURES))
    app.add_middleware(AuthMiddleware, settings=settings, keys=service.keys, rates=rates)
    app.add_middleware(
        RequestLogMiddleware,
        telemetry=service.telemetry,
        routes=routes,
        closing=lambda: service.closing,
    )
    if settings.cors_origins:  # outermost, so that a page may read refusals too
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "DELETE"],
            allow_headers=[
                "Authorization",
                "Content-Type",
                "Traceparent",
                "X-API-Key",
                "X-Request-ID",
            ],
            expose_headers=["Retry-After", "Traceparent", "X-Request-ID"],
        )
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    return app


def _questions(service: Service) -> dict[str, Question]:
    return {
        "/v1/predict": Question(service.predict, schemas.Texts),
        "/v1/certify": Question(service.certify, schemas.Texts),
        "/v1/detect": Question(service.detect, schemas.ToDetect),
        "/v1/explain": Question(service.explain, schemas.ExplainQuestion),
        "/v1/attack": Question(service.attack, schemas.AttackQuestion),
    }


def _add_routes(app: FastAPI, service: Service) -> None:
    several = {"texts": [schemas.EXAMPLE, "Striker scores twice in the cup final"]}
    one = {"text": schemas.EXAMPLE}
    flagged = {"texts": [schemas.SPAM, "see you at lunch"]}
    for path, handler, answer, example in (
        ("/v1/predict", service.predict, answers.Predictions, several),
        ("/v1/certify", service.certify, answers.Certificates, several),
        ("/v1/detect", service.detect, answers.Detections, flagged),
        ("/v1/explain", service.explain, answers.Explanation, {**one, "copies": 3}),
        ("/v1/attack", service.attack, answers.AttackAnswer, {**one, "budget": "radius+1"}),
    ):
        media = {"examples": {"request": {"value": example}}}
        app.add_api_route(
            path,
            handler,
            methods=["POST"],
            responses=documented(answer, *_POSTED),
            openapi_extra={"requestBody": {"content": {"application/json": media}}},
        )
    app.add_api_route("/v1/models", service.models, responses=documented(answers.Models, 401, 429))
    app.add_api_route("/healthz", service.healthz, responses=documented(answers.Health))
    app.add_api_route("/readyz", service.readyz, responses=documented(answers.Health, 503))
    metrics = documented(answers.Health, 401, 429)
    metrics[200] = {"description": "The metrics.", "content": {"text/plain": {"schema": _TEXT}}}
    app.add_api_route(
        "/metrics", service.metrics, responses=metrics, response_class=PlainTextResponse
    )


async def _page(content: bytes, kind: str) -> Response:
    return Response(content, media_type=kind)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    raise invalid(error.errors())


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = {
        404: ("no_such_route", "there is nothing here: /docs lists what there is"),
        405: ("wrong_method", "this method is not answered here: /docs says which is"),
    }.get(error.status_code, ("invalid_json", "the body is not valid JSON, or nested too deep"))
    raise Problem(error.status_code, code, message, error.headers)
