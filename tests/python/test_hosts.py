"""Jobs over two hosts of two ranks each, in network namespaces: groups across hosts, a cable that is cut, a host that
vanishes."""

import pathlib
import time

import pytest
from headway_process import command, run
from network_hosts import Hosts
from process_tree import wait_until
from tiny_model import write_model

COLLECTIVE_LIMIT = 4
END_LIMIT = 4 * COLLECTIVE_LIMIT  # the limits of the collective, of telling the others and of the store; some slack
SHORT = ("--token-ids", "5,17,301,44", "--max-tokens", "8", "--attn-tp", "2")
ENDLESS = ("--token-ids", "5,17,301,44", "--max-tokens", "60000", "--ignore-eos", "--attn-tp", "2")


@pytest.fixture
def hosts():
    try:
        with Hosts() as two:
            yield two
    except OSError as refused:
        pytest.skip(f"network namespaces are not permitted here: {refused}")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("hosts") / "tiny", positions=65536)


def generate(model: pathlib.Path, options: tuple[str, ...]) -> list[str]:
    return command(model, *options, "--collective-timeout", str(COLLECTIVE_LIMIT))


def texts(folder: pathlib.Path, name: str) -> list[str]:
    return [(folder / f"{name}{rank}").read_text() for rank in range(4)]


def test_groups_reach_across_hosts(hosts, model, tmp_path):
    jobs = hosts.start(generate(model, SHORT), tmp_path)
    codes = [job.wait(60) for job in jobs]
    errors = texts(tmp_path, "errors")
    assert codes == [0, 0, 0, 0], errors
    assert texts(tmp_path, "output") == [run(model, *SHORT, "--tp", "4").stdout, "", "", ""]
    # The attention groups of two ranks lie on one host each; only groups over both hosts do without shared memory.
    assert "ranks [0, 1, 2, 3] use Gloo instead of shared memory" in errors[0]
    assert "ranks [0, 1] use Gloo" not in errors[0] and "ranks [2, 3] use Gloo" not in errors[2]


def test_a_named_interface_is_used(hosts, model, tmp_path):
    jobs = hosts.start(generate(model, SHORT), tmp_path, HEADWAY_SOCKET_IFNAME="lo")
    codes = [job.wait(60) for job in jobs]
    assert codes == [1, 1, 1, 1]  # the loopback interface of a host does not reach the other
    assert "cannot connect the group of ranks [0, 1, 2, 3]" in texts(tmp_path, "errors")[0]


@pytest.mark.parametrize("what", ["the cable is cut", "a host vanishes"])
def test_a_lost_host_ends_the_job_within_the_limits(hosts, model, tmp_path, what):
    jobs = hosts.start(generate(model, ENDLESS), tmp_path)
    wait_until(lambda: texts(tmp_path, "output")[0], 60)
    start = time.monotonic()
    hosts.cut()
    lost = jobs[2:] if what == "a host vanishes" else []
    for job in lost:
        job.kill()  # nobody hears of it: the cable is out
    remaining = [job for job in jobs if job not in lost]
    codes = [job.wait(END_LIMIT) for job in remaining]
    assert time.monotonic() - start < END_LIMIT
    errors = texts(tmp_path, "errors")
    assert codes == [1] * len(remaining), errors
    for rank, text in enumerate(errors[:len(remaining)]):
        message = text.split("headway: error: ")[1]
        # Its own operation on a group, or that rank 0, whose messages it waits for, has given up before it.
        assert f"global rank {rank}" in message and " on " in message or \
            f"rank {rank}: message queue of world: " in message and "global rank 0" in message, message
    assert f"the time limit of {COLLECTIVE_LIMIT}000 ms has passed; global rank 2 did not arrive" in errors[0]
