"""Resumable work over many rows.

`api` is what a user calls, `task` what is done with a row, `run` the loop, `result_file` the file
that it writes, `shards` a folder instead; `stored` reads both, `summary` says what they are worth.
"""
