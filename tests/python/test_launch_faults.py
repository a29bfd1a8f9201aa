"""Ports that are taken, address families, names without addresses, variables that contradict each other."""

import os
import pathlib
import socket
import subprocess
import time

import pytest
from headway_process import command, run
from tiny_model import write_model

SHORT = ("--token-ids", "5,17", "--max-tokens", "6", "--collective-timeout", "5")
LIMIT = 10


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("launch") / "tiny")


@pytest.fixture(scope="module")
def expected(model) -> str:
    return run(model, *SHORT, "--tp", "2").stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def outcomes(commands: list[list[str]], variables: list[dict[str, str]]) -> list[subprocess.CompletedProcess]:
    """Runs all at the same time, each to its end."""
    started = [subprocess.Popen(one, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=os.environ | {"OMP_NUM_THREADS": "1"} | extra)
               for one, extra in zip(commands, variables)]
    texts = [process.communicate(timeout=60) for process in started]
    return [subprocess.CompletedProcess(process.args, process.returncode, *text)
            for process, text in zip(started, texts)]


def places(addresses: list[str], port: int) -> list[dict[str, str]]:
    return [{"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
             "MASTER_ADDR": address, "MASTER_PORT": str(port)} for rank, address in enumerate(addresses)]


def in_own_names(host_lines: str, folder: pathlib.Path, one: list[str]) -> list[str]:
    """The command where /etc/hosts holds these lines and the machine is called nameless."""
    hosts = folder / "hosts"
    hosts.write_text(host_lines)
    script = f'mount --bind {hosts} /etc/hosts && echo nameless > /proc/sys/kernel/hostname && exec "$@"'
    return ["unshare", "--mount", "--uts", "sh", "-c", script, "sh", *one]


@pytest.fixture
def own_names(tmp_path):
    try:
        probe = subprocess.run(in_own_names("", tmp_path, ["true"]), capture_output=True, text=True, timeout=LIMIT)
        refusal = probe.stderr.strip()
    except FileNotFoundError as absent:
        refusal = str(absent)
    if refusal:
        pytest.skip(f"names of its own are not permitted here: {refusal}")


# Fault case C01: a port that is taken is named at once; without a port no two jobs meet.
def test_a_taken_port_is_named(model):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        start = time.monotonic()
        first, second = outcomes([command(model, *SHORT)] * 2, places(["127.0.0.1"] * 2, port))
        assert time.monotonic() - start < 3 * LIMIT
    assert (first.returncode, second.returncode) == (1, 1)
    assert f"127.0.0.1:{port}" in first.stderr and "Address already in use" in first.stderr
    assert f"127.0.0.1:{port}" in second.stderr


def test_two_jobs_without_a_port_run_side_by_side(model, expected):
    for done in outcomes([command(model, *SHORT, "--tp", "2")] * 3, [{}] * 3):
        assert (done.returncode, done.stdout) == (0, expected), done.stderr


# Fault case C02: one address family, the other, and a name whose first address nobody listens at.
@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost"])
def test_either_address_family_serves(model, expected, address):
    if address == "::1" and not pathlib.Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    first, second = outcomes([command(model, *SHORT)] * 2, places([address] * 2, free_port()))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == expected


@pytest.mark.parametrize("lines", ["::1 both.test\n127.0.0.1 both.test\n", "127.0.0.1 both.test\n::1 both.test\n",
                                   "127.0.0.1 both.test\n"])
def test_each_address_of_a_name_is_tried(model, expected, own_names, tmp_path, lines):
    by_name = in_own_names(lines, tmp_path, command(model, *SHORT))
    first, second = outcomes([command(model, *SHORT), by_name], places(["127.0.0.1", "both.test"], free_port()))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == expected


def test_a_name_without_address_is_named_with_its_port(model):
    port = free_port()
    start = time.monotonic()
    (done,) = outcomes([command(model, *SHORT)], [places(["", "no.such.invalid"], port)[1]])
    assert time.monotonic() - start < 2 * LIMIT
    assert done.returncode == 1
    assert f"no.such.invalid:{port}" in done.stderr


# Fault case C03: the machine's own name need not resolve, and interface variables do not matter on one host.
@pytest.mark.parametrize("interface", [{}, {"GLOO_SOCKET_IFNAME": "^lo"}, {"GLOO_SOCKET_IFNAME": "nosuch7"}])
@pytest.mark.parametrize("collectives", ["shm", "gloo"])
def test_a_host_without_address_runs_through_loopback(model, expected, own_names, tmp_path, interface, collectives):
    nameless = in_own_names("127.0.0.1 localhost\n", tmp_path, command(model, *SHORT, "--tp", "2"))
    (done,) = outcomes([nameless], [interface | {"HEADWAY_COLLECTIVES": collectives}])
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_a_rank_that_never_arrives_is_named(model):
    start = time.monotonic()
    (done,) = outcomes([command(model, *SHORT)], [places(["127.0.0.1"] * 2, free_port())[0]])
    assert time.monotonic() - start < 2 * LIMIT
    assert done.returncode == 1
    assert "ranks [1] did not join within 5000 ms" in done.stderr


# Scripts for srun set RANK, WORLD_SIZE and LOCAL_RANK, and often nothing else.
def test_a_local_rank_without_a_local_size_is_taken_on_one_host(model, expected):
    set_by_script = [{name: value for name, value in place.items() if name != "LOCAL_WORLD_SIZE"}
                     for place in places(["127.0.0.1"] * 2, free_port())]
    first, second = outcomes([command(model, *SHORT)] * 2, set_by_script)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == expected
