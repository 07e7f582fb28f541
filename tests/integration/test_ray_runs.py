"""Shards on a Ray cluster of two nodes: the same bytes, whoever is killed.

Needs the extra ``ray``, which is not among the development dependencies: `pip install ray`.
"""

import pytest
from shard_helpers import (
    contents,
    kill,
    make_input,
    merged,
    parts,
    run,
    start,
    until,
    workers_seen,
)

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'ranmask[ray]'")
ON_RAY = ("--engine", "ray", "--workers", 2)


@pytest.fixture
def cluster():
    """A head node and another one, a worker each."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        second = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
        yield cluster, second
    finally:
        cluster.shutdown()


@pytest.fixture
def source(tmp_path):
    return make_input(tmp_path, 205)


def on(cluster):
    return (*ON_RAY, "--address", cluster[0].address)


def test_two_nodes_write_what_one_process_writes(cluster, source, tmp_path):
    local, distributed = tmp_path / "local", tmp_path / "distributed"
    assert run(source, local, "slow").returncode == 0
    before = workers_seen(tmp_path)
    done = run(source, distributed, "slow", *on(cluster))
    assert done.returncode == 0, done.stderr
    assert contents(local) == contents(distributed)
    assert len(workers_seen(tmp_path) - before) == 2  # both nodes worked
    assert "205 rows, 0 with errors" in done.stderr


def test_a_killed_actor_costs_its_shard_only(cluster, source, tmp_path):
    local, distributed = tmp_path / "local", tmp_path / "distributed"
    run(source, local, "slow")
    before = workers_seen(tmp_path)
    driver = start(source, distributed, "slow", *on(cluster))
    until(lambda: len(parts(distributed)) >= 2)
    kill(max(workers_seen(tmp_path) - before))
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == 0, said
    assert "shard" in said and "died" in said
    assert contents(local) == contents(distributed)


def test_a_removed_node_costs_time_only_and_a_new_one_joins(cluster, tmp_path):
    source = make_input(tmp_path, 505)
    local, distributed = tmp_path / "local", tmp_path / "distributed"
    run(source, local, "slow", "--workers", 2)
    before = workers_seen(tmp_path)
    driver = start(source, distributed, "slow", *on(cluster))
    until(lambda: len(parts(distributed)) >= 2)
    cluster[0].remove_node(cluster[1])
    cluster[0].add_node(num_cpus=1, object_store_memory=100 << 20)
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == 0, said
    assert "node" in said  # what was lost was lost with its node
    assert len(workers_seen(tmp_path) - before) == 3
    assert contents(local) == contents(distributed)


def test_a_killed_driver_resumes(cluster, source, tmp_path):
    local, distributed = tmp_path / "local", tmp_path / "distributed"
    run(source, local, "slow")
    driver = start(source, distributed, "slow", *on(cluster))
    until(lambda: len(parts(distributed)) >= 3)
    kill(driver.pid)
    driver.communicate(timeout=60)
    unfinished = len(parts(distributed))
    assert 3 <= unfinished < 11
    done = run(source, distributed, "slow", *on(cluster))
    assert done.returncode == 0 and "resuming" in done.stderr, done.stderr
    assert contents(local) == contents(distributed)
    rows = [line["row"] for line in merged(distributed, tmp_path / "merged.jsonl")]
    assert rows == list(range(1, 206))


def test_poison_rows_are_found_and_the_others_done(cluster, tmp_path):
    source = make_input(tmp_path, 64, {9: "good poison here", 50: "poison"})
    local, distributed = tmp_path / "local", tmp_path / "distributed"
    assert run(source, local, "deadly").returncode == 3
    done = run(source, distributed, "deadly", *on(cluster))
    assert done.returncode == 3, done.stderr
    assert contents(local) == contents(distributed)
    lines = merged(distributed, tmp_path / "merged.jsonl")
    assert [line["row"] for line in lines] == list(range(1, 65))
    assert [line["row"] for line in lines if "error" in line] == [9, 50]


def test_what_is_wrong_with_the_model_is_told(source, tmp_path):
    done = run(source, tmp_path / "out", "absent", "--engine", "ray")
    assert done.returncode == 1
    assert "has no 'absent'" in done.stderr and "Traceback" not in done.stderr


def test_a_cluster_that_is_not_there(source, tmp_path):
    done = run(source, tmp_path / "out", "steady", *ON_RAY, "--address", "127.0.0.1:1")
    assert done.returncode == 2, done.stderr
    assert "cannot reach the Ray cluster at 127.0.0.1:1" in done.stderr


def test_more_gpus_than_there_are(source, tmp_path):
    given = ("--engine", "ray", "--gpus-per-worker", 64)
    done = run(source, tmp_path / "out", "steady", *given)
    assert done.returncode == 2, done.stderr
    assert "64 GPUs" in done.stderr
