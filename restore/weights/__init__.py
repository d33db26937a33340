"""Weight files: found by name or path, verified, self-describing."""

from restore.weights.files import FORMAT, load_model, register, save_model
from restore.weights.manifest import Entry, Manifest, entries, find

__all__ = [
    "FORMAT",
    "Entry",
    "Manifest",
    "entries",
    "find",
    "load_model",
    "register",
    "save_model",
]
