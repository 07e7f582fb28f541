"""Are the results those of before?  Runs the same cases against two sources and compares.

    python -m tools.same_results record --python PY --source OLD/src --out FOLDER-1
    python -m tools.same_results record --python PY --source NEW/src --out FOLDER-2 --names new
    python -m tools.same_results compare FOLDER-1 FOLDER-2

``record`` runs commands (`cases`), the public API (`library`) and a service, each in a process with
the source on its path, on files that it makes itself (`inputs`), and writes what they gave: exit
codes, rows of output files, JSON on standard output, answers with their status.  It takes some
minutes; ``--only 'certify*'`` runs the groups that match, ``--long`` adds the smoke recipes that
take longest, ``--jobs 2`` runs two groups at once.

``compare`` prints how many cases there are, how many are equal, and of each other one the first
path that differs; it exits with 1 where one differs.  Every label, radius, vote, score and order
has to be the same, to the last bit.  Not compared (`normal`): times, places and versions, the
wording of messages, pictures and HTML; of text for people only its numbers, of Markdown only those
in tables.  What has another name or place by design stands in ``renamed.toml``.

Only the standard library is used here; the recorded ranmask brings its own.
"""
