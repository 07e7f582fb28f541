"""Training with shorter rows (`longest`) and fewer validation rows (`--held-out`)."""

import json
from dataclasses import replace

import made_up
import pytest
import tiny_models

from commands import run_cli
from ranmask import SmoothedClassifier
from ranmask.errors import OptionError, OutputError
from ranmask.training import encoder
from ranmask.training.encoder import train_encoder
from ranmask.training.options import TrainingOptions
from ranmask.words import document

pytestmark = pytest.mark.usefixtures("quiet")

SHORT = TrainingOptions(
    keep=(1,),
    epochs=1,
    vote_epochs=1,
    vote_copies=2,
    batch_size=8,
    target_words=1,
    longest=12,
)
FRAME = 2  # tokens of a row that are of no word
LONG_TEXT = " ".join(["good film"] * 40)


@pytest.fixture
def train(base_folder, tmp_path):
    def run(options=SHORT, pairs=False):
        data = made_up.corpus(24, pairs=pairs)
        held_out = made_up.corpus(6, "validation", seed=1, pairs=pairs)
        folder = tmp_path / "out"
        given = (str(base_folder), data, held_out, folder, options)
        return train_encoder(*given, device="cpu"), folder

    return run


class TestLongest:
    def test_is_read_by_the_trained_model_and_by_the_loaded_one(self, train):
        """After two phases, of which the second takes the first one's tokenizer."""
        trained, folder = train()
        loaded = SmoothedClassifier.from_pretrained(str(folder))
        for one in (trained, loaded):
            [result] = one.certify([LONG_TEXT])
            assert (result.words, result.words_read) == (80, SHORT.longest - FRAME)
        record = json.loads((folder / "training.json").read_text())
        assert record["run"]["options"]["longest"] == SHORT.longest

    def test_of_pairs(self, train):
        trained, _ = train(replace(SHORT, vote_epochs=0), pairs=True)
        assert trained.base.encoder.longest == SHORT.longest
        [one] = trained.certify([("the film was", LONG_TEXT)])
        whole = trained.base.words_read(document(("the film was", "good film")))
        assert whole == 2 < one.words_read < SHORT.longest

    def test_under_a_pair_head(self, train):
        trained, folder = train(replace(SHORT, vote_epochs=0, pair_head=True), pairs=True)
        again = SmoothedClassifier.from_pretrained(str(folder))
        assert trained.base.encoder.longest == again.base.encoder.longest == SHORT.longest

    def test_more_than_the_base_takes_is_what_the_base_takes(self, train):
        trained, _ = train(replace(SHORT, vote_epochs=0, longest=4096))
        assert trained.base.encoder.longest == tiny_models.LONGEST

    def test_another_one_does_not_resume(self, train, monkeypatch):
        class Killed(Exception):  # noqa: N818
            pass

        def kill(*_, **__):
            raise Killed

        monkeypatch.setattr(encoder, "train_phase", kill)
        with pytest.raises(Killed):
            train()
        for other in (None, 16):
            with pytest.raises(OutputError, match=rf"options\.longest \(12 there, {other} here\)"):
                train(replace(SHORT, longest=other))
        with pytest.raises(Killed):
            train()  # the same run goes on

    @pytest.mark.parametrize("longest", [7, 0, 12.5, True])
    def test_refused(self, longest):
        with pytest.raises(OptionError, match="longest must be a whole number of at least 8"):
            replace(SHORT, longest=longest)


class TestHeldOut:
    def run(self, tmp_path, *arguments):
        folder = tmp_path / "data"
        if not folder.exists():
            folder.mkdir()
            made_up.write_csv(folder / "train.csv", 48)
            made_up.write_csv(folder / "validation.csv", 15, seed=1)
        words = ("--kind", "words", "--epochs", 1, "--warm-epochs", 1, "--buckets", 4096)
        given = ("train", "--data", folder, "--output", tmp_path / "out", *words, *arguments)
        return run_cli(*given)

    def test_only_the_first_rows_are_validated_on(self, tmp_path):
        done = self.run(tmp_path, "--held-out", 6)
        assert done.exit_code == 0, done.stderr
        record = json.loads((tmp_path / "out" / "training.json").read_text())
        assert (record["run"]["validation"]["rows"], record["run"]["train"]["rows"]) == (6, 48)
        assert "the first 6 of 15 rows" in record["run"]["validation"]["note"]
        assert record["validation"]["texts"] == 6

    def test_rows_that_are_not_used_are_still_no_training_data(self, tmp_path):
        """What `--also` adds must not hold a text of validation, whichever part is measured."""
        extra = made_up.write_csv(tmp_path / "more.csv", 15, seed=1)
        done = self.run(tmp_path, "--held-out", 1, "--also", extra)
        assert done.exit_code == 0, done.stderr
        record = json.loads((tmp_path / "out" / "training.json").read_text())
        assert record["run"]["train"]["rows"] == 48

    def test_refused(self, tmp_path):
        done = self.run(tmp_path, "--held-out", 0)
        assert done.exit_code == 2 and "at least 1, not 0" in done.stderr
        assert not (tmp_path / "out").exists()
