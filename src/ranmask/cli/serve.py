"""``ranmask serve``: parse, call."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ranmask.cli.options import Device, Keep, MaskRate, tame_libraries
from ranmask.errors import MissingDependencyError, OptionError

KEY_VARIABLE = "RANMASK_API_KEY"

_NEEDED = ("fastapi", "uvicorn", "prometheus_client")


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="A model to serve, as for certify, or NAME=MODEL; may be given several times.",
            show_default="news",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond this machine, a key is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8000,
    processes: Annotated[
        int,
        typer.Option(help="Processes that answer, each with models of its own; more for a CPU."),
    ] = 1,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help=f"File that holds the API key; or set {KEY_VARIABLE}.", show_default=False
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="A web page of this origin may call; may be given several times.",
            show_default=False,
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A further name by which the service may be called without a key.",
            show_default=False,
        ),
    ] = None,
    deadline: Annotated[float, typer.Option(help="Most seconds for one answer.")] = 30.0,
    drain: Annotated[
        float, typer.Option(help="Seconds from SIGTERM, when /readyz says no, to closing the port.")
    ] = 1.0,
    most_texts: Annotated[int, typer.Option(help="Most texts in one request.")] = 256,
    most_words: Annotated[int, typer.Option(help="Most words in one text.")] = 2000,
    body_bytes: Annotated[int, typer.Option(help="Largest body of a request.")] = 1 << 20,
    arrival: Annotated[
        float, typer.Option(help="Most seconds for the head of a request to arrive, and its body.")
    ] = 10.0,
    connections: Annotated[int, typer.Option(help="Most connections that are open.")] = 1024,
    batch_copies: Annotated[int, typer.Option(help="Most copies scored at once.")] = 4096,
    waiting_copies: Annotated[
        int, typer.Option(help="Most copies that wait for a model; beyond it, 429.")
    ] = 1_000_000,
    threads: Annotated[int, typer.Option(help="Requests that are worked on at once.")] = 16,
    log_texts: Annotated[
        bool, typer.Option("--log-texts", help="Write the texts to the log too.")
    ] = False,
    keep: Keep = None,
    mask_rate: MaskRate = None,
    device: Device = None,
) -> None:
    """Answer over HTTP as certify does, with a page to try it on, until it is told to end."""
    tame_libraries()
    _check_installed()
    from ranmask.serving.processes import serve_as_set
    from ranmask.serving.settings import ServiceSettings

    given: dict[str, Any] = {"models": tuple(model)} if model else {}
    settings = ServiceSettings(
        host=host,
        port=port,
        processes=processes,
        **given,
        keep=keep,
        mask_rate=mask_rate,
        device=device,
        api_key=_key(api_key_file),
        cors_origins=tuple(cors_origin or ()),
        allowed_hosts=tuple(allowed_host or ()),
        body_bytes=body_bytes,
        arrival_seconds=arrival,
        connections=connections,
        most_texts=most_texts,
        most_words=most_words,
        deadline_seconds=deadline,
        drain_seconds=drain,
        batch_copies=batch_copies,
        waiting_copies=waiting_copies,
        threads=threads,
        log_texts=log_texts,
    )
    serve_as_set(settings)


def _key(file: Path | None) -> str | None:
    """The key; never an option by itself, which other users of the machine could read."""
    if file is None:
        return os.environ.get(KEY_VARIABLE) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read the API key from {file}: {error}") from error


def _check_installed() -> None:
    from importlib.util import find_spec

    for name in _NEEDED:
        if find_spec(name) is None:
            raise MissingDependencyError(name, "serve")
