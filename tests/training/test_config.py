import math
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restore.errors import UsageError
from restore.training import TrainConfig


def test_defaults_survive_toml(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(TrainConfig().to_toml())
    assert TrainConfig.load(path) == TrainConfig()


@settings(max_examples=50, deadline=None)
@given(
    name=st.text(st.characters(codec="utf-8")),
    data=st.lists(st.text(max_size=8), max_size=3),
    rate=st.floats(1e-9, 10),
    table=st.dictionaries(
        st.text(min_size=1, max_size=6),
        st.one_of(st.booleans(), st.integers(-9, 9), st.text(max_size=5), st.lists(st.integers())),
        max_size=3,
    ),
)
def test_any_setting_survives_toml(name, data, rate, table) -> None:
    config = TrainConfig(
        name=name, data=tuple(data), learning_rate=rate, model_config={**table, "deep": table}
    )
    assert TrainConfig.from_dict(tomllib.loads(config.to_toml())) == config


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('name = "a"\nbatch = 3\n')
    over = {
        "batch": "8",
        "recipe": "awgn",
        "slots": "[3]",
        "slot_weights": "1",
        "learning_rate": "1",
    }
    config = TrainConfig.load(path, over | {"model_config.stem": "4"})
    assert (config.name, config.batch, config.recipe, config.slots) == ("a", 8, "awgn", (3,))
    assert config.slot_weights == (1.0,)
    assert isinstance(config.slot_weights[0], float)
    assert config.model_config == {"stem": 4}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bach": 3}, 'unknown training option "bach"'),
        ({"batch": "many"}, "batch must be of type int"),
        ({"batch": 2.5}, "batch must be of type int"),
        ({"batch": True}, "batch must be of type int"),
        ({"checkpointing": 1}, "checkpointing must be of type bool"),
        ({"learning_rate": "fast"}, "learning_rate must be of type float"),
        ({"slots": ["a"]}, "slots must be of type int"),
        ({"model_config": 3}, "model_config must be of type dict"),
        ({"name": 3}, "name must be of type str"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"slots": [3]}, "pair up"),
        ({"amp": "fp8"}, "amp"),
        ({"ema": 1.0}, "ema"),
        ({"guided": 0.5, "feedback": 0.5}, "guided"),
        ({"guided": 0.5, "scale": 2}, "guided"),
    ],
)
def test_what_cannot_work_is_named(values, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TrainConfig.from_dict(values)


def test_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        TrainConfig.load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(UsageError, match=r"bad\.toml: not valid TOML"):
        TrainConfig.load(tmp_path / "bad.toml")
    with pytest.raises(UsageError, match='"batch" is not a table'):
        TrainConfig.load(None, {"batch": "3", "batch.size": "3"})


@pytest.mark.parametrize(
    "path", sorted(Path(__file__).parents[2].glob("experiments/configs/*.toml")), ids=str
)
def test_configurations_of_the_experiments_are_valid(path: Path) -> None:
    config = TrainConfig.load(path)
    assert config.name == path.stem
    assert math.isfinite(config.learning_rate)
