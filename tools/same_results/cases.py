"""What is run: groups of commands, and requests to the service, with the old names.

A line is ``name: arguments of ranmask``.  The commands of a group run in their order in one folder
that holds the files of `tools.same_results.inputs`, so that a later one finds what an earlier one
wrote.  ``name: @cut FILE`` keeps the first half of a file, as a killed run leaves it;
``name: @interrupt ARGUMENTS`` sends Ctrl-C once files appear; ``name: @library SCRIPT`` runs a
function of `tools.same_results.library` there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NEWS = "-m news-words --input news.csv --label-column label"
_SYNONYMS = "--neighbours synonyms.json --tagger none --stop-words none"
_MADE = "-m tiny --input made-test.csv --label-column label"

_COMMANDS = {
    "certify": f"""
        default: certify {_NEWS} --output default.jsonl
        again: certify {_NEWS} --output default.jsonl
        other-options: certify {_NEWS} --keep 2 --output default.jsonl
        printed: certify -m news-words "Oil prices rise" "Team wins the cup" "  " ""
        printed-json: certify -m news-words --json "Oil prices rise again"
        reviews: certify -m reviews-words --input reviews.csv --label-column label --output r.jsonl
        vote: certify {_NEWS} --ensemble vote --output vote.jsonl
        edits: certify {_NEWS} --threat edits --output edits.jsonl
        distinct: certify {_NEWS} --family distinct --output distinct.jsonl
        keep-2: certify {_NEWS} --keep 2 --output keep-2.jsonl
        sampled: certify {_NEWS} --keep 3 --family sampled --masks 100 --seed 7 --output s.jsonl
        windows: certify {_NEWS} --keep 2 --family windows --ensemble vote --output windows.jsonl
        mask-rate: certify {_NEWS} --mask-rate 0.8 --masks 200 --output rate.jsonl
        ablation: certify {_NEWS} --certificate ablation --masks 400 --selection-masks 50 \
            --output a.jsonl
        runner-up: certify {_NEWS} --certificate ablation-runner-up --masks 400 --alpha 0.01 \
            --output b.jsonl
        paper: certify {_NEWS} --certificate paper --masks 400 --output paper.jsonl
        as-printed: certify {_NEWS} --certificate paper-as-printed --masks 400 --seed 3 \
            --output p.jsonl
        beta: certify {_NEWS} --certificate paper-estimated-beta --masks 300 --output e.jsonl
        compare: certify {_NEWS} --compare --masks 300 --output compare.jsonl
        copies: certify {_NEWS} --copies 6 --output copies.jsonl
        labels: certify -m news-words --labels W,S,B,T --input news.txt --output labels.jsonl
        function: certify -m classify:keywords --keep 1 --hide drop --input reviews.csv \
            --output f.jsonl
        mask-token: certify -m classify:keywords --keep 2 --mask-token good --input \
            reviews.csv --output m.jsonl
    """,
    "rows": """
        tsv: certify -m news-words --input news.tsv --label-column label --output tsv.jsonl
        jsonl: certify -m news-words --input news.jsonl --text-column headline --label-column \
            topic --output jsonl.jsonl
        txt: certify -m news-words --input news.txt --output txt.jsonl
        parquet: certify -m news-words --input news.parquet --label-column label --output \
            parquet.jsonl
        unlabelled: certify -m news-words --input news.csv --output unlabelled.jsonl
        corpus: certify -m news-words --data agnews --rows 20 --output corpus.jsonl
        corpus-all: predict -m reviews-words --data sst2 --split validation --output split.jsonl
        hostile: certify -m news-words --input hostile.jsonl --label-column label --output \
            hostile-out.jsonl
        hostile-predict: predict -m news-words --input hostile.jsonl --output h.jsonl
        hostile-keep-2: certify -m news-words --keep 2 --masks 200 --input hostile.jsonl \
            --output h2.jsonl
        hostile-edits: certify -m news-words --threat edits --input hostile.jsonl --output he.jsonl
        no-text: certify -m news-words --input no-text.jsonl --label-column label --output \
            no-text-out.jsonl
        blank-lines: certify -m news-words --input blank.txt --output blank.jsonl
        bad-labels: certify -m news-words --input bad-labels.csv --label-column label --output \
            bad.jsonl
        not-utf8: certify -m news-words --input latin.txt --output latin.jsonl
        broken: certify -m news-words --input broken.jsonl --output broken-out.jsonl
        ragged: certify -m news-words --input ragged.csv --output ragged.jsonl
        empty: certify -m news-words --input nothing.csv --output nothing.jsonl
        header-only: certify -m news-words --input header.csv --output header.jsonl
        pairs: certify -m classify:pairs --keep 1 --hide drop --input pairs.jsonl \
            --pair-columns premise,hypothesis --label-column label --output pairs-out.jsonl
        pairs-predict: predict -m classify:pairs --keep 2 --input pairs.jsonl --pair-columns \
            premise,hypothesis --output pp.jsonl
        pairs-refused: certify -m news-words --input pairs.jsonl --pair-columns premise,hypothesis
        raising: certify -m classify:raising --keep 1 --input news.csv --output raising.jsonl
        shapeless: certify -m classify:shapeless --keep 1 --input news.csv --output shapeless.jsonl
        moody: certify -m classify:moody --keep 1 --input news.csv --output moody.jsonl
    """,
    "predict": f"""
        default: predict {_NEWS} --output default.jsonl
        printed: predict -m reviews-words "A superb film" "A dull mess" " "
        keep-2: predict {_NEWS} --keep 2 --ensemble vote --output keep-2.jsonl
        windows: predict {_NEWS} --keep 3 --family windows --output windows.jsonl
        fresh: predict {_NEWS} --keep 2 --sampling fresh --masks 30 --seed 5 --output fresh.jsonl
        fresh-again: predict {_NEWS} --keep 2 --sampling fresh --masks 30 --seed 6 --output \
            other.jsonl
        logit: predict {_NEWS} --ensemble logit --output logit.jsonl
        function: predict -m classify:keywords --mask-rate 0.5 --input reviews.csv --output f.jsonl
        compared: compare default.jsonl keep-2.jsonl --json
    """,
    "resume": f"""
        whole: certify {_NEWS} --keep 2 --output out.jsonl
        cut: @cut out.jsonl
        resumed: certify {_NEWS} --keep 2 --output out.jsonl
        predicted: predict {_NEWS} --output p.jsonl
        cut-again: @cut p.jsonl
        predicted-on: predict {_NEWS} --output p.jsonl
        attacked: attack {_NEWS} --recipe anywords --texts 6 --output a.jsonl
        cut-attack: @cut a.jsonl
        attacked-on: attack {_NEWS} --recipe anywords --texts 6 --output a.jsonl
        betas: beta -m news-words --input reviews.csv --masks 100 --draws 5 --changed 3 \
            --output b.jsonl
        cut-betas: @cut b.jsonl
        betas-on: beta -m news-words --input reviews.csv --masks 100 --draws 5 --changed 3 \
            --output b.jsonl
        changed: certify -m news-words --input reviews.csv --keep 2 --output out.jsonl
        interrupted: @interrupt certify -m classify:slow --keep 1 --input news.csv --output \
            slow.jsonl
        after-it: certify -m classify:slow --keep 1 --input news.csv --output slow.jsonl
    """,
    "shards": f"""
        certify: certify {_NEWS} --output run --shard-rows 5 --workers 2
        again: certify {_NEWS} --output run --shard-rows 5 --workers 2
        show: runs show run --json
        verify: runs verify run
        merge: runs merge run merged.jsonl
        merge-parquet: runs merge run merged.parquet
        predict: predict -m news-words --input hostile.jsonl --output p --shard-rows 4 --workers 1
        merge-predict: runs merge p p.jsonl
        attack: attack {_NEWS} --recipe anywords --vocabulary words.txt --output a \
            --shard-rows 6 --workers 2
        show-attack: runs show a --json
        merge-attack: runs merge a a.jsonl
        compared: compare merged.jsonl merged.jsonl --json
        no-run: runs show inputs
        taken: runs merge run merged.jsonl
    """,
    "attack": f"""
        deepwordbug: attack {_NEWS} --recipe deepwordbug --output dwb.jsonl
        deepwordbug-today: attack {_NEWS} --recipe deepwordbug --preset textattack-0.3.11 \
            --output dwb2.jsonl
        deepwordbug-plain: attack {_NEWS} --recipe deepwordbug --plain --stop-words none \
            --output dwb3.jsonl
        anywords: attack {_NEWS} --recipe anywords --output any.jsonl
        anywords-radius: attack {_NEWS} --recipe anywords --budget radius --seed 4 \
            --vocabulary words.txt --output anyr.jsonl
        critical: attack {_NEWS} --recipe critical --output critical.jsonl
        critical-keep-2: attack {_NEWS} --recipe critical --keep 2 --texts 4 --masks 100 \
            --output crit2.jsonl
        several-words: attack {_NEWS} --recipe several-words {_SYNONYMS} --output several.jsonl
        labels-only: attack {_NEWS} --recipe labels-only {_SYNONYMS} --seed 2 --output only.jsonl
        textfooler: attack {_NEWS} --recipe textfooler --output fooler.jsonl
        textfooler-free: attack {_NEWS} --recipe textfooler {_SYNONYMS} --budget 3 --output \
            free.jsonl
        fresh: attack {_NEWS} --recipe deepwordbug --sampling fresh --masks 20 --keep 2 \
            --texts 6 --most-queries 40 --output fresh.jsonl
        reviews: attack -m reviews-words --recipe deepwordbug --input reviews.csv \
            --label-column label --together 2 --output r.jsonl
        printed: attack -m reviews-words --recipe anywords --budget 2 --input reviews.csv \
            --label-column label --json
        hostile: attack -m news-words --recipe anywords --input hostile.jsonl --label-column \
            label --budget 2 --most-queries 50 --output h.jsonl
        bad-labels: attack -m news-words --recipe anywords --input bad-labels.csv \
            --label-column label --output bad.jsonl
        all-wrong: attack -m news-words --recipe anywords --input wrong.csv --label-column \
            label --output wrong.jsonl
        compared: compare dwb.jsonl dwb2.jsonl --json
        pairs: attack -m classify:pairs --keep 1 --recipe anywords --input pairs.jsonl \
            --pair-columns premise,hypothesis --label-column label --output pairs-out.jsonl
        no-labels: attack -m news-words --recipe anywords --input news.txt
        no-recipe: attack -m news-words --recipe nothing --input news.csv --label-column label
        radius-of-fresh: attack {_NEWS} --recipe deepwordbug --sampling fresh --keep 2 \
            --budget radius
    """,
    "train": f"""
        words: train --data made.csv --kind words --epochs 2 --output tiny
        again: train --data made.csv --kind words --epochs 2 --output tiny
        accuracy: train --data made.csv --kind words --target-words 0 --epochs 2 --buckets \
            4096 --seed 3 --output exact
        detector: train --data detected.csv --kind words --target-words 0 --epochs 2 --buckets \
            4096 --output detector
        majority: train --data noise.csv --kind words --epochs 1 --target-words 3 \
            --fail-below-majority --output noise
        certify: certify {_MADE} --output tiny.jsonl
        predict: predict {_MADE} --output predicted.jsonl
        accurate: certify -m exact --input made-test.csv --label-column label --output exact.jsonl
        attack: attack {_MADE} --recipe textfooler {_SYNONYMS} --output attacked.jsonl
        blend: blend tiny exact --output blended
        blended: certify -m blended --input made-test.csv --label-column label --output \
            blended.jsonl
        cascade: cascade build tiny exact detector --output cascade --threshold 0.4
        cascade-certify: certify -m cascade --input made-test.csv --label-column label \
            --output cascade.jsonl
        cascade-predict: predict -m cascade --input made-test.csv --output cascade-p.jsonl
        cascade-attack: attack -m cascade --input made-test.csv --label-column label --recipe \
            textfooler {_SYNONYMS} --output cascade-a.jsonl
        cascade-report: cascade report -m cascade --attacked attacked.jsonl --output report.json
        compared: compare tiny.jsonl exact.jsonl --json
        compare-attacks: compare attacked.jsonl cascade-a.jsonl --json
        tune: tune -m tiny --data made-test.csv --split all --keep 1,2 --output tuned.json \
            --svg tuned.svg
        beta: beta -m tiny --input made-test.csv --masks 60 --draws 5 --changed 3 --output \
            beta.jsonl
        taken: blend tiny exact --output blended
        other-classes: blend tiny news-words --output wrong
        no-detector: cascade build tiny exact tiny --output wrong
    """,
    "news": """
        certify: certify --input news.csv --label-column label --output out.jsonl
        deepwordbug: attack --recipe deepwordbug --input news.csv --label-column label --texts \
            4 --most-queries 60 --output dwb.jsonl
    """,
    "tune": """
        news: tune -m news-words --data news.csv --split all --at 2 --output news.json --svg \
            news.svg
        again: tune -m news-words --data news.csv --split all --at 2 --output news.json
        several: tune -m news-words --data news.csv --split all --keep 1,2 --mask-rate 0.8 \
            --family auto,windows --ensemble vote,score --masks 100 --threshold 0,2 --rule paper \
            --output several.json
        frontier: tune -m reviews-words --data reviews.csv --split all --rule frontier \
            --output f.json
        no-labels: tune -m news-words --data bad-labels.csv --split all
        skipped: tune -m news-words --data gaps.csv --split all --skip-bad-rows
    """,
    "beta": """
        words: beta -m news-words --input news.csv --label-column label --masks 200 --draws 10 \
            --changed 4 --output beta.jsonl
        keep-2: beta -m news-words --keep 2 --seed 3 --masks 100 --draws 10 --changed 2 "Oil \
            prices rise again and shares fall"
        function: beta -m classify:keywords --mask-rate 0.6 --masks 50 --draws 4 --input \
            reviews.csv --output f.jsonl
    """,
    "refused": """
        version-wrong: --versions
        no-command: nothing
        no-text: certify -m news-words
        unknown-model: certify -m newz "a text"
        no-folder: certify -m ./nowhere "a text"
        unknown-option: certify -m news-words --kept 2 "a text"
        rate: certify -m news-words --mask-rate 1.5 "a text"
        rate-word: certify -m news-words --mask-rate much "a text"
        both: certify -m news-words --keep 2 --mask-rate 0.5 "a text"
        keep: certify -m news-words --keep 0 "a text"
        family: certify -m news-words --family some "a text"
        distinct: certify -m news-words --family distinct --keep 2 "a text"
        certificate: certify -m news-words --certificate mine "a text"
        ablation-family: certify -m news-words --certificate ablation --family all "a text"
        alpha: certify -m news-words --alpha 0.1 "a text"
        edits: certify -m news-words --threat edits --keep 2 "a text"
        ensemble: certify -m news-words --ensemble mean "a text"
        safer: certify -m news-words --certificate safer "a text"
        missing-file: certify -m news-words --input nowhere.csv
        kind-of-file: certify -m news-words --input classify.py
        missing-column: certify -m news-words --input news.csv --text-column headline
        missing-labels: certify -m news-words --input news.csv --label-column topic
        two-inputs: certify -m news-words --input news.csv "a text"
        corpus: certify -m news-words --data nowhere
        no-place: certify -m news-words --input news.csv --output nowhere/at/all.jsonl
        folder: certify -m news-words --input . --output out.jsonl
        shards-without-output: certify -m news-words --input news.csv --shard-rows 5
        workers: certify -m news-words --input news.csv --output out.jsonl --workers 2
        sampling: certify -m news-words --sampling fresh "a text"
        lm: predict -m news-words --sampling lm --keep 2 "a text"
        function: certify -m classify:nothing --keep 1 "a text"
        module: certify -m nothing:here --keep 1 "a text"
        no-keep: certify -m classify:keywords "a text"
        only-errors: certify -m news-words " "
        compare-nothing: compare nowhere.jsonl news.csv
        report-nothing: report nowhere
        recipe: reproduce nothing
        set: reproduce sst2-certified --smoke --set nothing=1
        train-data: train --data nowhere.csv --kind words --output out
        train-kind: train --data made.csv --kind sentences --output out
        train-encoder: train --data made.csv --output out
        train-option: train --data made.csv --kind words --base somewhere --output out
        serve-model: serve -m nowhere
        serve-open: serve -m news-words --host 0.0.0.0 --port 0
        serve-port: serve -m news-words --port 99999
    """,
    "library-words": "run: @library words",
    "library-functions": "run: @library functions",
    "library-news": "run: @library news",
    "library-models": "run: @library models",
    "reproduce": """
        list: reproduce --list
        certified: reproduce sst2-certified --smoke --runs runs --device cpu
        again: reproduce sst2-certified --smoke --runs runs --device cpu
        beta: reproduce sst2-beta --smoke --runs runs --device cpu
        averages: reproduce headline-averages risk-probability --smoke --runs runs
        report: report runs/sst2-certified-smoke runs/sst2-beta-smoke \
            runs/headline-averages-smoke runs/risk-probability-smoke --output report.html \
            --markdown report.md --figures figures
        condensed: report runs/sst2-certified-smoke --output one.html --condensed condensed.json
        from-condensed: report condensed.json --output again.html --markdown again.md
        compared: compare runs/sst2-certified-smoke runs/sst2-certified-smoke --json
        dry: reproduce agnews-certified --smoke --runs runs --dry-run
    """,
}

_LONG = {
    "long-certified": """
        agnews: reproduce agnews-certified --smoke --runs runs --device cpu
        rates: reproduce rate-ablation --smoke --runs runs --device cpu
        beta: reproduce agnews-beta --smoke --runs runs --device cpu
        report: report runs/agnews-certified-smoke runs/rate-ablation-smoke \
            runs/agnews-beta-smoke --output r.html --markdown r.md
    """,
    "long-empirical": """
        sst2: reproduce sst2-empirical --smoke --runs runs --device cpu
        safer: reproduce safer --smoke --runs runs --device cpu
        entropy: reproduce entropy --smoke --runs runs --device cpu
        report: report runs/sst2-empirical-smoke runs/safer-smoke runs/entropy-smoke --output \
            r.html --markdown r.md
    """,
    "long-others": """
        agnews: reproduce agnews-empirical --smoke --runs runs --device cpu
        imdb: reproduce imdb-empirical --smoke --runs runs --device cpu
        snli: reproduce snli-empirical --smoke --runs runs --device cpu
        report: report runs/agnews-empirical-smoke runs/imdb-empirical-smoke \
            runs/snli-empirical-smoke --output r.html --markdown r.md
    """,
}


def commands(long: bool = False) -> dict[str, list[tuple[str, str]]]:
    """By group: names of cases, and their command lines."""
    found = {**_COMMANDS, **(_LONG if long else {})}
    return {group: [_split(line) for line in _lines(text)] for group, text in found.items()}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def _split(line: str) -> tuple[str, str]:
    name, _, command = line.partition(": ")
    return name, command


# -- the service -----------------------------------------------------------------------------------

SERVERS = {
    "served": ("--model", "news-words", "--model", "films=reviews-words"),
    "served-news": ("--model", "news"),
}
_TEXT = "Stocks fell sharply on Wall Street as oil prices rose again"
_FILM = "A wonderful film , superb acting and a moving , perfect story"
_TEXTS = [_TEXT, "Team wins the cup", " ", "naïve café 🏀 中文", "word"]
_PREDICT, _CERTIFY, _EXPLAIN, _ATTACK = (
    f"POST /v1/{name}" for name in ("predict", "certify", "explain", "attack")
)

Request = tuple[str, str, Mapping[str, Any] | bytes | None]

REQUESTS: dict[str, list[Request]] = {
    "served-news": [
        ("predict", _PREDICT, {"text": _TEXT}),
        ("certify", _CERTIFY, {"texts": _TEXTS}),
        ("keep-2", _CERTIFY, {"text": _TEXT, "options": {"keep": 2, "masks": 40}}),
        ("explain", _EXPLAIN, {"text": _TEXT, "copies": 4}),
        ("attack", _ATTACK, {"text": _TEXT, "budget": 3}),
    ],
    "served": [
        ("models", "GET /v1/models", None),
        ("health", "GET /healthz", None),
        ("ready", "GET /readyz", None),
        ("predict", _PREDICT, {"text": _TEXT}),
        ("predict-film", _PREDICT, {"text": _FILM, "model": "films"}),
        ("predict-many", _PREDICT, {"texts": _TEXTS}),
        ("certify", _CERTIFY, {"text": _TEXT}),
        ("certify-many", _CERTIFY, {"texts": _TEXTS}),
        *(
            (f"certify-{number}", _CERTIFY, {"texts": _TEXTS[:2], "options": options})
            for number, options in enumerate(
                (
                    {"keep": 2},
                    {"keep": 3, "family": "sampled", "masks": 60, "seed": 4},
                    {"keep": 2, "family": "windows", "ensemble": "vote"},
                    {"family": "distinct"},
                    {"threat": "edits"},
                    {"mask_rate": 0.7, "masks": 50},
                    {"certificate": "ablation", "masks": 300, "alpha": 0.01},
                    {"certificate": "ablation-runner-up", "masks": 300, "selection_masks": 50},
                    {"certificate": "paper", "masks": 300},
                    {"certificate": "paper-as-printed", "masks": 300},
                    {"certificate": "paper-estimated-beta", "masks": 200},
                    {"ensemble": "logit"},
                    {"keep": 2, "mask_rate": 0.5},
                    {"keep": 0},
                    {"alpha": 0.1},
                    {"family": "some"},
                    {"kept": 2},
                )
            )
        ),
        ("explain", _EXPLAIN, {"text": _TEXT}),
        ("explain-keep-2", _EXPLAIN, {"text": _TEXT, "copies": 3, "options": {"keep": 2}}),
        (
            "explain-edits",
            _EXPLAIN,
            {"text": _FILM, "model": "films", "options": {"threat": "edits"}},
        ),
        ("explain-blank", _EXPLAIN, {"text": " "}),
        ("attack", _ATTACK, {"text": _TEXT}),
        ("attack-beyond", _ATTACK, {"text": _TEXT, "budget": "radius+1"}),
        ("attack-number", _ATTACK, {"text": _FILM, "model": "films", "budget": 4}),
        ("attack-wrong", _ATTACK, {"text": _TEXT, "label_id": 0}),
        ("attack-class", _ATTACK, {"text": _TEXT, "label_id": 9}),
        ("no-model", _CERTIFY, {"text": _TEXT, "model": "nothing"}),
        ("no-text", _CERTIFY, {}),
        ("both", _CERTIFY, {"text": _TEXT, "texts": [_TEXT]}),
        ("none", _CERTIFY, {"texts": []}),
        ("blank", _CERTIFY, {"texts": [" ", ""]}),
        ("number", _CERTIFY, {"text": 5}),
        ("pair", _CERTIFY, {"text": ["a premise", "a hypothesis"]}),
        ("unknown-key", _CERTIFY, {"text": _TEXT, "colour": "red"}),
        ("many-words", _CERTIFY, {"text": "w " * 3000}),
        ("many-texts", _CERTIFY, {"texts": ["w"] * 300}),
        ("large", _CERTIFY, b" " * 1_100_000 + b"{}"),
        ("not-json", _CERTIFY, b"{"),
        ("not-utf8", _CERTIFY, b"\xff\xfe\x00"),
        ("surrogate", _CERTIFY, b'{"text": "\\ud800"}'),
        ("nowhere", "GET /v1/nowhere", None),
        ("method", "GET /v1/certify", None),
    ],
}
