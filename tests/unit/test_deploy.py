"""The files for operators name options that there are, and a service that has keys."""

import re
from pathlib import Path

import pytest

from ranmask.cli.command import flag_of
from ranmask.options.fields import option_fields
from ranmask.serving.settings import ServiceSettings

DEPLOY = Path(__file__).parents[2] / "deploy"
FLAGS = {
    flag_of(name, option.flag): option.name
    for name, option in option_fields(ServiceSettings).items()
}


def arguments(file, text):
    if file == "ranmask.service":
        text = re.search(r"^ExecStart=(.*?[^\\\\])$", text, re.MULTILINE | re.DOTALL)[1]
    elif file == "compose.yaml":
        text = text[text.index("command:") : text.index("ports:")]
    else:
        text = text[text.index("ENTRYPOINT") :]
    return re.findall(r"--[a-z-]+", text)


@pytest.mark.parametrize("file", ["Dockerfile", "compose.yaml", "ranmask.service"])
def test_options_are_those_of_the_command(file):
    given = arguments(file, (DEPLOY / file).read_text())
    assert len(given) >= 2
    assert set(given) <= set(FLAGS)


def test_what_others_reach_has_keys():
    for file in ("compose.yaml", "ranmask.service"):
        assert "--api-key-file" in arguments(file, (DEPLOY / file).read_text())
    assert "USER 10001" in (DEPLOY / "Dockerfile").read_text()


def test_the_proxy_waits_and_takes_as_much_as_the_service():
    said = (DEPLOY / "nginx.conf").read_text()
    assert int(re.search(r"proxy_read_timeout (\d+)s", said)[1]) > ServiceSettings.deadline_seconds
    assert (
        int(re.search(r"client_max_body_size (\d+)m", said)[1]) << 20 == ServiceSettings.body_bytes
    )
