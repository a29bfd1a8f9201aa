"""Two "hosts" with addresses of their own: network namespaces joined by a virtual cable. They share /dev/shm and the
kernel, so HEADWAY_HOST_ID says which ranks are on one host."""

import os
import pathlib
import subprocess

RANKS_EACH = 2


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


class Hosts:
    """Make one with `with`; OSError says what the machine does not permit."""

    NAMES = ("a", "b")

    def __init__(self) -> None:
        self._prefix = f"hw{os.getpid() % 100000}"
        self._jobs: list[subprocess.Popen] = []

    def __enter__(self) -> "Hosts":
        try:
            for name in self.NAMES:
                ip("netns", "add", self._namespace(name))
                self._in_host(name, "link", "set", "lo", "up")
            ip("link", "add", self._cable("a"), "netns", self._namespace("a"), "type", "veth",
               "peer", "name", self._cable("b"), "netns", self._namespace("b"))
            for name in self.NAMES:
                self._in_host(name, "address", "add", f"{self.address(name)}/24", "dev", self._cable(name))
                self._in_host(name, "link", "set", self._cable(name), "up")
        except OSError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for job in self._jobs:
            job.kill()
            job.wait(20)
        for name in self.NAMES:
            subprocess.run(["ip", "netns", "delete", self._namespace(name)], capture_output=True, timeout=20)

    def address(self, name: str) -> str:
        return f"10.213.7.{1 + self.NAMES.index(name)}"

    def cut(self) -> None:
        """Takes the cable out: what is sent from now on is lost, and nobody is told."""
        self._in_host("a", "link", "set", self._cable("a"), "down")

    def start(self, command: list[str], folder: pathlib.Path, **variables: str) -> list[subprocess.Popen]:
        """A rank for each of four places, the first two on host a, their output in `folder`."""
        jobs = []
        for rank in range(len(self.NAMES) * RANKS_EACH):
            name = self.NAMES[rank // RANKS_EACH]
            place = {"RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_RANK": str(rank % RANKS_EACH),
                     "LOCAL_WORLD_SIZE": str(RANKS_EACH), "MASTER_ADDR": self.address("a"), "MASTER_PORT": "29517",
                     "HEADWAY_HOST_ID": f"host {name}", "OMP_NUM_THREADS": "1"}
            with (folder / f"output{rank}").open("w") as output, (folder / f"errors{rank}").open("w") as errors:
                jobs.append(subprocess.Popen(["ip", "netns", "exec", self._namespace(name), *command],
                                             env=os.environ | place | variables, stdin=subprocess.DEVNULL,
                                             stdout=output, stderr=errors))
        self._jobs += jobs
        return jobs

    def _namespace(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def _cable(self, name: str) -> str:
        return f"{self._prefix}v{name}"

    def _in_host(self, name: str, *arguments: str) -> None:
        ip("-n", self._namespace(name), *arguments)
