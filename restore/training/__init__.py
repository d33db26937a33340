"""Train a model: configuration, windows of aligned frames, the loop, checkpoints."""

from restore.training.config import TrainConfig
from restore.training.loop import Trainer

__all__ = ["TrainConfig", "Trainer"]
