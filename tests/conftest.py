"""Property tests draw new cases on every run, except in CI, where a run must be repeatable."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
