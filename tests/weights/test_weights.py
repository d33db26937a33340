"""Weight files describe themselves, are verified, and fail with one line that helps."""

import hashlib
import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from restore import weights
from restore.errors import WeightsError


class Tiny(nn.Module):
    def __init__(self, *, channels: int = 4, blocks: tuple[int, ...] = (1,)) -> None:
        super().__init__()
        if not isinstance(blocks, tuple):
            raise TypeError("blocks must be a tuple")
        self.conv = nn.Conv2d(3, channels, 3)
        self.norm = nn.BatchNorm2d(channels)


MODELS = {"tiny": (Tiny, {"channels": 4})}
META = {"name": "first", "model": "tiny", "command": "train it", "scores": {"psnr": 30.5}}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "known"
    place.mkdir()
    (place / "manifest.json").write_text("[]\n")
    return place


@pytest.fixture
def file(tmp_path):
    torch.manual_seed(0)
    path = tmp_path / "first.safetensors"
    module = Tiny(channels=6, blocks=(2, 3))
    weights.save_model(
        module, path, META | {"config": {"channels": 6, "blocks": (2, 3)}}, models=MODELS
    )
    return path


def load(name, **options):
    return weights.load_model(name, models=MODELS, **options)


def one_line(caught) -> str:
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.exit_code == 6
    return message


def test_a_users_own_file_describes_itself(file, folder):
    module, entry = load(file, folder=folder)
    torch.manual_seed(0)
    want = Tiny(channels=6).state_dict()
    assert not module.training
    assert entry.name == "first"
    assert entry.config == {"channels": 6, "blocks": (2, 3)}
    assert entry.origin["command"] == "train it"
    for key, value in module.state_dict().items():
        assert value.dtype == want[key].dtype
        assert torch.equal(value, want[key].half().to(value.dtype)), key


def test_file_is_plain_safetensors_in_half_precision(file):
    stored = load_file(file)
    assert stored["conv.weight"].dtype == torch.float16
    assert stored["norm.num_batches_tracked"].dtype == torch.int64


def test_known_name_is_found_listed_and_verified(file, folder):
    weights.register(file, folder=folder, origin={"terms": "CC BY"})
    onnx = file.with_suffix(".onnx")
    onnx.write_bytes(b"graph")
    weights.register(onnx, folder=folder)

    (entry,) = weights.entries(folder)
    assert entry.origin["terms"] == "CC BY"
    assert load("first", folder=folder)[1] == entry
    for suffix in (".safetensors", ".onnx"):
        found = weights.find("first", suffix, folder=folder)
        assert hashlib.sha256(found.read_bytes()).hexdigest() == entry.files[found.name]
    listed = json.loads((folder / "manifest.json").read_text())
    assert [line["name"] for line in listed] == ["first"]


def test_one_changed_byte_of_a_known_file_is_found(file, folder):
    weights.register(file, folder=folder)
    known = folder / "first.safetensors"
    content = bytearray(known.read_bytes())
    content[-1] ^= 1
    known.write_bytes(content)
    with pytest.raises(WeightsError, match=r"first\.safetensors: damaged") as caught:
        load("first", folder=folder)
    assert "Known names: first" in one_line(caught)


def test_unknown_name_lists_the_known_ones(file, folder):
    weights.register(file, folder=folder)
    with pytest.raises(WeightsError, match="second: no weights of that name") as caught:
        load("second", folder=folder)
    assert "Known names: first" in one_line(caught)
    with pytest.raises(WeightsError, match=r"has no \.onnx file"):
        weights.find("first", ".onnx", folder=folder)


@pytest.mark.parametrize("suffix", [".safetensors", ".onnx"])
def test_missing_file(tmp_path, folder, suffix):
    with pytest.raises(WeightsError, match="No such file") as caught:
        weights.find(tmp_path / f"gone{suffix}", suffix, folder=folder)
    one_line(caught)


@pytest.mark.parametrize("content", [b"", b"x", b"\xff" * 64, pickle.dumps({"conv": 1})])
def test_what_is_no_safetensors_file(tmp_path, folder, content):
    path = tmp_path / "own.safetensors"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match="not a safetensors file") as caught:
        load(path, folder=folder)
    one_line(caught)


def test_every_truncation_is_an_error(file, folder):
    content = file.read_bytes()
    for size in {0, 4, 8, 100, len(content) // 2, len(content) - 1}:
        file.write_bytes(content[:size])
        with pytest.raises(WeightsError):
            load(file, folder=folder)


def test_a_pickle_is_never_opened(tmp_path, folder):
    path = tmp_path / "own.pth"
    torch.save(Tiny().state_dict(), path)
    with pytest.raises(WeightsError, match=r"not a \.safetensors file"):
        load(path, folder=folder)


def test_somebody_elses_safetensors_file(tmp_path, folder):
    path = tmp_path / "own.safetensors"
    save_file(Tiny().state_dict(), path)
    with pytest.raises(WeightsError, match="not written by restore") as caught:
        load(path, folder=folder)
    one_line(caught)


def rewrite(file, **changes):
    from safetensors import safe_open

    with safe_open(file, "pt") as opened:
        header = json.loads(opened.metadata()["restore"])
    save_file(load_file(file), file, metadata={"restore": json.dumps(header | changes)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 99}, "newer version of restore"),
        ({"model": "unknown"}, "'unknown', which this version"),
        ({"config": {"channels": 8}}, "does not fit"),
        ({"config": {"no_such": 8}}, "does not fit"),
        ({"config": {"channels": -1}}, "does not fit"),
        ({"format": None}, "not written by restore"),
        ({"config": 3}, "not written by restore"),
    ],
)
def test_header_that_does_not_fit(file, folder, changes, message):
    rewrite(file, **changes)
    with pytest.raises(WeightsError, match=message) as caught:
        load(file, folder=folder)
    one_line(caught)


def test_published_weights_never_change(tmp_path, file, folder):
    weights.register(file, folder=folder)
    weights.register(file, folder=folder)  # the same again is no change
    other = tmp_path / "other.safetensors"
    weights.save_model(Tiny(), other, META, models=MODELS)
    with pytest.raises(WeightsError, match="Choose another name"):
        weights.register(other, folder=folder)
    weights.register(other, folder=folder, replace=True)
    assert load("first", folder=folder)[0].conv.out_channels == 4


def test_replaced_weights_lose_the_onnx_file_of_the_old_ones(tmp_path, file, folder):
    weights.register(file, folder=folder)
    onnx = file.with_suffix(".onnx")
    onnx.write_bytes(b"graph")
    weights.register(onnx, folder=folder)
    weights.save_model(Tiny(), file, META, models=MODELS)
    entry = weights.register(file, folder=folder, replace=True)
    assert list(entry.files) == ["first.safetensors"]


def test_saving_refuses_what_cannot_be_loaded(tmp_path, folder):
    path = tmp_path / "own.safetensors"
    with pytest.raises(ValueError, match="expected"):
        weights.save_model(Tiny(channels=5), path, META, models=MODELS)
    large = Tiny()
    nn.init.constant_(large.conv.bias, 1e6)
    with pytest.raises(ValueError, match="float16"):
        weights.save_model(large, path, META, models=MODELS)
    assert list(tmp_path.iterdir()) == [folder]


def test_damaged_manifest(folder):
    (folder / "manifest.json").write_text("[{]")
    with pytest.raises(WeightsError, match="damaged manifest"):
        weights.entries(folder)


def test_every_weight_file_that_comes_with_restore_loads():
    known = weights.entries()
    for entry in known:
        for name, digest in entry.files.items():
            path = weights.find(entry.name, "." + name.rpartition(".")[2])
            assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
        module, described = weights.load_model(entry.name)
        assert described == entry
        assert sum(value.numel() for value in module.parameters()) > 0
        for key in ("command", "data", "scores"):
            assert key in entry.origin, f"{entry.name} does not say its {key}"
    files = {path.name for path in weights.manifest.weights_folder().glob("*.*")}
    listed = {name for entry in known for name in entry.files}
    assert {name for name in files if name.endswith((".safetensors", ".onnx"))} == listed
