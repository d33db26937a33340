"""Read and write weight files; safetensors, never a pickle.

A file carries in its header, under the key `restore`, what is needed to build its network: format
number, name, key of `restore.models.MODELS`, constructor arguments; and where it comes from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restore.errors import WeightsError
from restore.weights.manifest import (
    SAFETENSORS,
    SUFFIXES,
    Entry,
    Manifest,
    known_names,
    read_verified,
    write_whole,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

Models = Mapping[str, "tuple[type[nn.Module], dict[str, Any]]"]

FORMAT = 1
"""Number of the header's layout; files with a higher one are refused."""


def load_model(
    name_or_path: str | Path, *, models: Models | None = None, folder: Path | None = None
) -> tuple[nn.Module, Entry]:
    """Build the network of some weights, on the CPU, float32, in evaluation mode.

    Args:
        name_or_path: Name in the manifest, or path of a safetensors file.
        models: Network name -> (class, default arguments); default: `restore.models.MODELS`.
        folder: Folder of the known weights; default: those that come with restore.

    Returns:
        The network and the description its file carries.

    Raises:
        WeightsError: If the file is missing, damaged, or of a network this version lacks.
    """
    path, content, listed = read_verified(name_or_path, SAFETENSORS, folder)
    state, entry = _parse(content, path, folder)
    kinds = _models(models)
    if entry.model not in kinds:
        raise WeightsError(
            f"{path}: made for the network '{entry.model}', which this version of restore lacks. "
            f"Update restore. {known_names(folder)}"
        )
    try:
        _check(kinds[entry.model][0], entry.config, state)
        network = kinds[entry.model][0](**entry.config)
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        reason = " ".join(str(error).split())
        raise WeightsError(
            f"{path}: does not fit the network '{entry.model}' ({reason}). {known_names(folder)}"
        ) from error
    network.load_state_dict(state)
    return network.eval(), listed or entry


def _models(models: Models | None) -> Models:
    if models is not None:
        return models
    from restore.models import MODELS

    return MODELS


def _parse(content: bytes, path: Path, folder: Path | None) -> tuple[dict[str, Tensor], Entry]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        state = load(content)
    except (SafetensorError, KeyError, ValueError) as error:
        raise WeightsError(
            f"{path}: damaged, or not a safetensors file. {known_names(folder)}"
        ) from error
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    try:
        header = json.loads(metadata["restore"])
        number = int(header["format"])
        entry = Entry.from_dict(header) if number <= FORMAT else None
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{path}: not written by restore. {known_names(folder)}") from error
    if entry is None:
        raise WeightsError(f"{path}: written by a newer version of restore. Update restore.")
    return {k: v.float() if v.is_floating_point() else v for k, v in state.items()}, entry


def _check(kind: type[nn.Module], config: dict[str, Any], state: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless the weights fit; takes no memory for the network."""
    import torch

    with torch.device("meta"):
        expected = {k: tuple(v.shape) for k, v in kind(**config).state_dict().items()}
    got = {k: tuple(v.shape) for k, v in state.items()}
    if expected != got:
        wrong = sorted(k for k in expected.keys() | got.keys() if expected.get(k) != got.get(k))
        shapes = (
            f"{expected.get(wrong[0], 'nothing')} expected, {got.get(wrong[0], 'nothing')} found"
        )
        raise ValueError(f"{wrong[0]}: {shapes}")


def save_model(
    module: nn.Module, path: str | Path, meta: Mapping[str, Any], *, models: Models | None = None
) -> Entry:
    """Write a network's weights as float16, with everything needed to build it again.

    Args:
        module: The network; not changed.
        path: File to write, ending in .safetensors; appears only when complete.
        meta: `name`, `model` (key of `MODELS`), `config` (arguments that differ from the defaults
            of `MODELS`), and the origin in plain types: `command`, `data`, `terms`, `scores`, ...
        models: Network name -> (class, default arguments); default: `restore.models.MODELS`.

    Returns:
        The description that was written.

    Raises:
        ValueError: If `meta` describes another network, or a weight does not fit into float16.
    """
    from safetensors.torch import save

    path = Path(path)
    if path.suffix != SAFETENSORS:
        raise ValueError(f"{path}: weight files end in {SAFETENSORS}")
    kind, defaults = _models(models)[meta["model"]]
    described = dict(meta) | {"config": {**defaults, **meta.get("config", {})}}
    described.pop("files", None)
    state = {}
    for key, value in module.state_dict().items():
        kept = value.detach().cpu()
        state[key] = (kept.half() if kept.is_floating_point() else kept).contiguous().clone()
        if not bool(state[key].isfinite().all()):
            raise ValueError(f"{key} holds values that float16 cannot hold")
    entry = Entry.from_dict(json.loads(json.dumps(described)))
    _check(kind, entry.config, state)
    header = json.dumps({"format": FORMAT, **entry.as_dict()})
    write_whole(path, save(state, metadata={"format": "pt", "restore": header}))
    return entry


def register(
    file: str | Path,
    *,
    origin: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    replace: bool = False,
) -> Entry:
    """Put a weight file among the known ones: copy it and add it to the manifest.

    An ONNX file joins the weights whose name its file name is.

    Args:
        file: File that `save_model` wrote, or an ONNX file.
        origin: What the manifest shall say beyond the file's own description: scores, model card.
        folder: Folder of the known weights; default: those that come with restore.
        replace: Change weights that are already known. Published weights never change: retrained
            ones get a new name.

    Returns:
        The new line of the manifest.

    Raises:
        WeightsError: If the file cannot be used, or other weights have that name.
    """
    path = Path(file)
    manifest = Manifest.read(folder)
    content = read_verified(path, path.suffix if path.suffix in SUFFIXES else SAFETENSORS, folder)[
        1
    ]
    if path.suffix == SAFETENSORS:
        entry = _parse(content, path, folder)[1]
        # A changed network makes the old ONNX file wrong.
        files = {}
    else:
        known = manifest.entries.get(path.stem)
        if known is None:
            raise WeightsError(f"{path}: no weights named {path.stem}. {known_names(folder)}")
        entry, files = known, dict(known.files)
    target = manifest.folder / f"{entry.name}{path.suffix}"
    digest = hashlib.sha256(content).hexdigest()
    before = manifest.entries.get(entry.name)
    if before and before.files.get(target.name, digest) != digest and not replace:
        raise WeightsError(f"{path}: other weights are named {entry.name}. Choose another name.")
    if before and before.files.get(target.name) == digest:
        files = dict(before.files)
    files[target.name] = digest
    entry = Entry(entry.name, entry.model, entry.config, {**entry.origin, **(origin or {})}, files)
    if path.resolve() != target.resolve():
        write_whole(target, content)
    manifest.entries[entry.name] = entry
    manifest.write()
    return entry
