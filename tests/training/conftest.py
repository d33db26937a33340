from pathlib import Path
from typing import Any

import pytest
import torch
from panning_clips import SMALL, Panning

from restore.models import MODELS
from restore.training import TrainConfig, Trainer


@pytest.fixture
def make_clips() -> type[Panning]:
    return Panning


@pytest.fixture
def trainer(tmp_path: Path):
    def make(clips: Panning | None = None, folder: str = "run", **changes: Any) -> Trainer:
        config = TrainConfig.from_dict(SMALL | changes)
        torch.manual_seed(config.seed)
        kind, arguments = MODELS[config.model]
        return Trainer(config, kind(**arguments), clips or Panning(), tmp_path / folder)

    return make
