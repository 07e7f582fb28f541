"""Runs over more rows than one process, or one machine, should hold.

A run is cut into shards of consecutive rows.  Workers, each with a model of its own (`work`), turn
shards into Parquet files (`columns`), which the driver puts into one folder with a manifest
(`folder`).  Workers are processes of this machine (`local`) or actors of a Ray cluster (`ray`)
behind one small protocol (`workers`); `run` hands out shards, `bad_rows` finds rows that kill
whoever works on them.  `reading` reads what a run left.

**Every file of the folder has the same bytes whatever the number of workers, the engine or the
number of interruptions**: what a worker computes depends on its shard alone.
"""
