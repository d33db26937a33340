"""Train an upscaler: the same loop as for denoising, on clips that are shrunk first.

    python experiments/train_superres.py --max-minutes 2 --scale 2 --model_config.scale 2
    python experiments/train_superres.py --config experiments/configs/upscale-x4.toml --data CLIPS

Without --data the photographs that scikit-image brings are set in motion. A run is resumed by
giving the same command again.
"""

from __future__ import annotations

import sys

from train_denoise import main as train

from restore.data.cache import ClipCache
from restore.data.datasets import ClipDataset, builtin_source, find_sources
from restore.data.degrade import MixedRecipe, Recipe, Sample
from restore.data.sampling import SAMPLERS
from restore.data.shrink import SHRINKS, CleanRecipe, SmallDataset
from restore.data.sources import Source
from restore.errors import UsageError
from restore.training import TrainConfig
from restore.training.command import pick

RECIPES: dict[str, type[CleanRecipe] | type[MixedRecipe]] = {
    "clean": CleanRecipe,
    "mixed": MixedRecipe,
}

PHOTOGRAPHS = 0.5
"""Share of the photographs: their detail is sharper than that of decoded videos."""


def datasets(config: TrainConfig) -> tuple[ClipDataset, list[Sample]]:
    """Return the training set and the validation samples of a configuration."""
    if config.scale < 2 or config.model_config.get("scale") != config.scale:
        raise UsageError("give scale, from 2 up, and the same as model_config.scale")
    recipe: Recipe = pick(RECIPES, config.recipe, "recipe")(**config.recipe_config)
    sampler = pick(SAMPLERS, config.sampler, "sampler")(**config.sampler_config)
    for name in config.shrinks:
        pick(SHRINKS, name, "way to shrink")
    cache = ClipCache(config.cache or None)

    def small(folders: tuple[str, ...], ways: tuple[str, ...], side: int) -> SmallDataset:
        found: list[Source] = [builtin_source()]
        if folders:
            found = find_sources(folders, cache=cache, photo_share=PHOTOGRAPHS)
        kind = sampler if side == config.patch else SAMPLERS["consecutive"]()
        return SmallDataset(
            found, kind, recipe, patch=(side, side), seed=config.seed, scale=config.scale,
            shrinks=ways,
        )  # fmt: skip

    training = small(config.data, config.shrinks, config.patch)
    side = 192 // config.scale * config.scale
    samples = []
    for way in dict.fromkeys(config.shrinks):
        held_out = small(config.validation, (way,), side)
        for index in range(4):
            drawn = held_out.validation(index, 7)
            samples.append(Sample(drawn.clean, drawn.noisy, drawn.curve, {"group": way}))
    return training, samples


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    return train(argv, data=datasets, what="an upscaler", prog="train_superres")


if __name__ == "__main__":
    sys.exit(main())
