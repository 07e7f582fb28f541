"""Resumable work over many rows.

`api` is what a user calls, `task` what is done with a row, `result_file` the file of a run,
`shards` a folder instead; `stored` reads both, `summary` says what they are worth.  `detect` does
the same for detectors, `flag_counts` says how often those are right.
"""
