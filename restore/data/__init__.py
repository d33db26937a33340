"""Training data: sources, sampling, degradations; every random choice keyed by step and index."""

from restore.data.cache import Clip, ClipCache
from restore.data.datasets import ClipDataset, builtin_source, find_sources
from restore.data.degrade import AwgnRecipe, Degradation, MixedRecipe, Recipe, Sample, degrade
from restore.data.sampling import (
    Consecutive,
    FullyRandom,
    MotionWeighted,
    Sampler,
    Strided,
    UniformSegments,
)
from restore.data.shards import ShardSource, write_shards
from restore.data.sources import ClipSource, PhotoSource, Source

__all__ = [
    "AwgnRecipe",
    "Clip",
    "ClipCache",
    "ClipDataset",
    "ClipSource",
    "Consecutive",
    "Degradation",
    "FullyRandom",
    "MixedRecipe",
    "MotionWeighted",
    "PhotoSource",
    "Recipe",
    "Sample",
    "Sampler",
    "ShardSource",
    "Source",
    "Strided",
    "UniformSegments",
    "builtin_source",
    "degrade",
    "find_sources",
    "write_shards",
]
