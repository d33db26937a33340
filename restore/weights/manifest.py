"""What weights there are: names, descriptions, files and their sha256."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from restore.errors import WeightsError

SAFETENSORS = ".safetensors"
SUFFIXES = (SAFETENSORS, ".onnx")


@dataclass(frozen=True)
class Entry:
    """Describe the weights of one name."""

    name: str
    model: str
    """Key of `restore.models.MODELS`."""
    config: dict[str, Any]
    """Keyword arguments of the network's constructor."""
    origin: dict[str, Any] = field(default_factory=dict)
    """Command, data and its terms, scores, settings of the training."""
    files: dict[str, str] = field(default_factory=dict)
    """File name -> sha256; empty for a file that is not in a manifest."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain types, as the manifest and the header hold them."""
        described = {"name": self.name, "model": self.model, "config": self.config, **self.origin}
        return described | ({"files": self.files} if self.files else {})

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Entry:
        """Read what `as_dict` returned; KeyError or TypeError if it is something else."""
        rest = dict(described)
        rest.pop("format", None)
        name, model, config = str(rest.pop("name")), str(rest.pop("model")), rest.pop("config")
        files = dict(rest.pop("files", {}))
        return cls(name, model, _tuples(dict(config)), rest, files)


def _tuples(value: Any) -> Any:
    """Turn JSON's lists back into tuples."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def weights_folder() -> Path:
    """Return the folder of the weight files: the checkout's, else the installed package's."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "setup.cfg").is_file() and (checkout / "weights" / "manifest.json").is_file():
        return checkout / "weights"
    try:
        return Path(str(importlib.resources.files("restore_weights")))
    except ModuleNotFoundError as error:
        raise WeightsError(
            "no weight files are installed. Reinstall the package, or name a file: --model FILE"
        ) from error


@dataclass(frozen=True)
class Manifest:
    """List the weights of a folder."""

    folder: Path
    entries: dict[str, Entry]

    @classmethod
    def read(cls, folder: Path | None = None) -> Manifest:
        """Read `manifest.json`.

        Args:
            folder: Folder of the weight files; default: those that come with restore.

        Raises:
            WeightsError: If the manifest is missing or damaged.
        """
        folder = weights_folder() if folder is None else folder
        path = folder / "manifest.json"
        try:
            entries = [Entry.from_dict(item) for item in json.loads(path.read_bytes())]
        except OSError as error:
            raise WeightsError(f"{path}: {error.strerror}. Reinstall the package.") from error
        except (ValueError, KeyError, TypeError) as error:
            raise WeightsError(f"{path}: damaged manifest. Reinstall the package.") from error
        return cls(folder, {entry.name: entry for entry in entries})

    def write(self) -> None:
        """Write `manifest.json`, sorted by name."""
        listed = [self.entries[name].as_dict() for name in sorted(self.entries)]
        write_whole(self.folder / "manifest.json", (json.dumps(listed, indent=1) + "\n").encode())


def entries(folder: Path | None = None) -> list[Entry]:
    """Return the known weights, sorted by name."""
    known = Manifest.read(folder).entries
    return [known[name] for name in sorted(known)]


def is_path(name_or_path: str | Path) -> bool:
    """Tell a file, by its ending or folder, from the name of known weights."""
    text = str(name_or_path)
    separators = {os.sep, os.altsep or os.sep}
    return (
        isinstance(name_or_path, Path)
        or any(separator in text for separator in separators)
        or text.lower().endswith(SUFFIXES)
    )


def find(
    name_or_path: str | Path, suffix: str = SAFETENSORS, *, folder: Path | None = None
) -> Path:
    """Return the file of some weights, verified against the manifest if they are known by name.

    Args:
        name_or_path: Name in the manifest, or path of a file.
        suffix: Kind of file: ".safetensors" or ".onnx".
        folder: Folder of the known weights; default: those that come with restore.

    Raises:
        WeightsError: If there is no such file or name, or the file is damaged.
    """
    return read_verified(name_or_path, suffix, folder)[0]


def read_verified(
    name_or_path: str | Path, suffix: str, folder: Path | None
) -> tuple[Path, bytes, Entry | None]:
    """Return path and content of what `find` finds, and the manifest's entry if it has one."""
    if is_path(name_or_path):
        path = Path(name_or_path)
        if path.suffix.lower() != suffix:
            raise WeightsError(f"{path}: not a {suffix} file. {known_names(folder)}")
        return path, _read(path, folder), None
    manifest = Manifest.read(folder)
    entry = manifest.entries.get(str(name_or_path))
    if entry is None:
        raise WeightsError(f"{name_or_path}: no weights of that name. {known_names(folder)}")
    path = manifest.folder / f"{entry.name}{suffix}"
    if path.name not in entry.files:
        raise WeightsError(f"{entry.name}: has no {suffix} file. {known_names(folder)}")
    content = _read(path, folder)
    if hashlib.sha256(content).hexdigest() != entry.files[path.name]:
        raise WeightsError(
            f"{path}: damaged (its sha256 differs). Reinstall it. {known_names(folder)}"
        )
    return path, content, entry


def _read(path: Path, folder: Path | None) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise WeightsError(f"{path}: {error.strerror}. {known_names(folder)}") from error


def known_names(folder: Path | None) -> str:
    """Say which names there are, for the end of an error message."""
    names = ", ".join(sorted(Manifest.read(folder).entries))
    return f"Known names: {names or 'none'}."


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears only when complete."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
