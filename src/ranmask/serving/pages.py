"""What people see in a browser: the files of the page."""

from __future__ import annotations

from importlib import resources

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and type of the page's files by the paths that they are served at."""
    package = resources.files("ranmask.serving")
    found = {"/docs.css": ((package / "templates" / "docs.css").read_bytes(), _KINDS["css"])}
    for file in (package / "page").iterdir():
        kind = _KINDS.get(file.name.rpartition(".")[2])
        if kind is not None and file.is_file():
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            found[path] = (file.read_bytes(), kind)
    return found
