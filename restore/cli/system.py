"""Explain a system library that is missing: `python -m restore.cli.system`."""

from __future__ import annotations

import re
import sys

# What opencv-python's wheel expects from the system, by the name the loader complains about.
PACKAGES = {
    "libGL.so": "libgl1",
    "libEGL.so": "libegl1",
    "libglib-2.0.so": "libglib2.0-0t64 (before Debian 13 and Ubuntu 24.04: libglib2.0-0)",
    "libgthread-2.0.so": "libglib2.0-0t64 (before Debian 13 and Ubuntu 24.04: libglib2.0-0)",
    "libgomp.so": "libgomp1",
    "libSM.so": "libsm6",
    "libICE.so": "libice6",
    "libX11.so": "libx11-6",
    "libXext.so": "libxext6",
    "libXrender.so": "libxrender1",
    "libxcb.so": "libxcb1",
}


def missing_library_hint(error: str) -> str:
    """Say in one line which Debian package brings the library that `error` names.

    Args:
        error: Text of the ImportError, such as
            "libGL.so.1: cannot open shared object file: No such file or directory".

    Returns:
        One line; where no library is named, the error's own text.
    """
    library = re.search(r"(lib[\w+.-]+?\.so)[\w.]*", error)
    if library is None:
        return f"{error}. Install restore again."
    package = PACKAGES.get(library[1])
    if package is None:
        return (
            f"OpenCV needs {library[0]}, which this system lacks. Install the package that has it."
        )
    return (
        f"OpenCV needs {library[0]}, which this system lacks. Debian, Ubuntu: apt install {package}"
    )


def main() -> int:
    """Import OpenCV; where that fails, print what to install.

    Returns:
        Exit code: 0, or 1 when OpenCV cannot be loaded.
    """
    try:
        import cv2  # noqa: F401
    except ImportError as error:
        print(missing_library_hint(str(error)), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
