"""Property tests draw new cases on every run, except in CI, where a run must be repeatable."""

import os

from hypothesis import settings

# No deadlines: timings belong in benchmarks, and a busy machine must not fail a test.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
