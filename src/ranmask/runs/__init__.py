"""Resumable work over many rows: into one file (`run`), or a folder of shards (`shards`).

`files` says where a result can be written.
"""
