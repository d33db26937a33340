import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "experiments"))
import train_superres  # noqa: E402

from restore.training import TrainConfig  # noqa: E402

TINY = {
    "name": "tiny", "model": "upscaler-tiny", "recipe": "clean", "scale": 2, "patch": 32,
    "model_config.scale": 2, "batch": 1, "unroll": 2, "workers": 0, "lpips": 0, "warmup": 1,
    "device": "cpu", "steps": 2,
}  # fmt: skip


def options(out: Path, *more: str) -> list[str]:
    settings = [part for key, value in TINY.items() for part in (f"--{key}", str(value))]
    return ["--out", str(out), *settings, *more]


def test_a_run_ends_with_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train_superres.main(options(tmp_path)) == 0
    told = capsys.readouterr().out
    assert "validation bi " in told
    assert ", bd " in told

    from restore.weights import load_model

    network, entry = load_model(tmp_path / "tiny.safetensors")
    assert entry.config["scale"] == network.scale == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--model_config.scale", "4"), "the same as model_config.scale"),
        (("--shrinks", '["bi", "fog"]'), 'no way to shrink "fog"'),
        (("--recipe", "snow"), 'no recipe "snow"; known: clean, mixed'),
    ],
)
def test_a_wrong_option_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: tuple[str, str], message: str
) -> None:
    assert train_superres.main(options(tmp_path, *wrong)) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted((ROOT / "experiments/configs").glob("upscale-*.toml")))
def test_configurations_can_be_used(path: Path) -> None:
    config = TrainConfig.load(path)
    assert config.name == path.stem
    assert config.model_config["scale"] == config.scale
    assert config.recipe in train_superres.RECIPES
