"""The training loop: unrolled windows, weighted losses, averaged weights, clean stops."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed import (
    all_reduce,
    broadcast,
    destroy_process_group,
    init_process_group,
    is_initialized,
)
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from restore.errors import RestoreError
from restore.training.checkpoint import load_checkpoint, save_checkpoint
from restore.training.config import TrainConfig
from restore.training.objective import Objective, enlarged_reference
from restore.training.replay import replay
from restore.training.windows import Batches, Clips, Window, WindowDataset

Report = Callable[[int, dict[str, float]], None]
Validate = Callable[[nn.Module], dict[str, float]]


class Trainer:
    """One training run: build it, `fit` it, and find the averaged weights in `averaged`.

    Under `torchrun` every process takes its own clips of each step; losses are means over pixels,
    so that two processes equal one with twice the batch.
    """

    def __init__(
        self, config: TrainConfig, model: nn.Module, clips: Clips | None, folder: Path
    ) -> None:
        """Set up the run.

        Args:
            config: Everything that decides the result.
            model: The network, its weights initialised.
            clips: Where degraded clips come from; None where `dataset` is another one.
            folder: Where checkpoints are kept and found.
        """
        self.config, self.clips, self.folder = config, clips, folder
        self.rank = int(os.environ.get("RANK", 0))
        self.world = int(os.environ.get("WORLD_SIZE", 1))
        name = config.device
        if name == "auto":
            name = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(name)
        if self.device.type == "cpu":
            torch.set_num_threads(config.threads)
        if self.world > 1 and not is_initialized():
            init_process_group("nccl" if self.device.type == "cuda" else "gloo")
        self.model = model.to(self.device).train()
        for module in self.model.modules():
            if isinstance(module, nn.Conv2d):
                module.to(memory_format=torch.channels_last)
        self.averaged = AveragedModel(self.model, multi_avg_fn=self._average, use_buffers=False)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.rate)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=config.amp == "fp16")
        self.objective = Objective(config, self.device)
        self.step = 0
        self.skipped = 0
        self._in_a_row = 0
        self.waited = self.worked = 0.0
        self.parallel = DistributedDataParallel(self.model) if self.world > 1 else self.model

    def rate(self, step: int) -> float:
        """Return the learning rate of a step over the configured one: warm-up, then cosine.

        It follows the square root of the effective batch, 16 pictures counting as one.
        """
        config = self.config
        pictures = config.batch * config.unroll * config.accumulate * self.world
        scale = math.sqrt(pictures / 16)
        if step < config.warmup:
            return scale * (step + 1) / config.warmup
        progress = (step - config.warmup) / max(config.steps - config.warmup, 1)
        cosine = 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        return scale * (config.final_rate + (1 - config.final_rate) * cosine)

    def _average(self, averaged: Any, current: Any, count: Tensor | int) -> None:
        """Move the averaged weights; early on quicker, so that they forget the first ones."""
        decay = min(self.config.ema, (1 + int(count)) / (10 + int(count)))
        torch._foreach_lerp_(averaged, current, 1 - decay)

    def resume(self) -> bool:
        """Continue from the folder's checkpoint; False if there is none.

        Raises:
            RestoreError: If the checkpoint belongs to another configuration.
        """
        path = self.folder / "checkpoint.pt"
        if not path.is_file():
            return False
        load_checkpoint(path, self)
        return True

    def fit(
        self,
        *,
        report: Report | None = None,
        validate: Validate | None = None,
        max_minutes: float = math.inf,
    ) -> bool:
        """Train until the last step or until the time is up.

        Args:
            report: Called after every step with its number and its figures.
            validate: Called with the averaged model every `validate_every` steps and when the run
                stops; its figures go to `report`.
            max_minutes: Stop cleanly after this time, resumable.

        Returns:
            True if the last step was reached.

        Raises:
            RestoreError: After `bad_steps` non-finite steps in a row.
        """
        began = saved = time.monotonic()
        batches = self.batches()
        while self.step < self.config.steps:
            figures = self.train_step(batches)
            last = self.step == self.config.steps
            now = time.monotonic()
            over = self._agree(now - began > 60 * max_minutes)
            due = self.step % self.config.validate_every == 0 or last or over
            if validate is not None and due and self.rank == 0:
                figures |= validate(self.averaged.module)
            if report is not None and self.rank == 0:
                report(self.step, figures)
            if now - saved > 60 * self.config.checkpoint_minutes or last or over:
                saved = now
                if self.rank == 0:
                    save_checkpoint(self.folder / "checkpoint.pt", self)
            if over:
                break
        if self.world > 1 and is_initialized():
            destroy_process_group()
        return self.step >= self.config.steps

    def dataset(self) -> Batches:
        """Return the batches from the current step on."""
        assert self.clips is not None, "no clips and no other batches"
        return WindowDataset(self.clips, self.config, rank=self.rank, start=self.step)

    def batches(self) -> Iterator[list[Window]]:
        """Return the batches from the current step on, built by the data processes."""
        loader: DataLoader[list[Window]] = DataLoader(
            self.dataset(),  # type: ignore[arg-type]
            batch_size=None,
            num_workers=self.config.workers,
            # A forked process inherits locks of OpenCV's and PyTorch's threads and hangs on them.
            multiprocessing_context="spawn" if self.config.workers else None,
            collate_fn=_as_it_is,
            prefetch_factor=4 if self.config.workers else None,
            worker_init_fn=_one_thread,
        )
        return replay(iter(loader), self.config.replay, seed=self.config.seed + self.step)

    def train_step(self, batches: Iterator[list[Window]]) -> dict[str, float]:
        """Run one optimizer step; returns its figures, means over its pictures."""
        began = time.monotonic()
        totals: dict[str, Tensor] = {}
        waited = 0.0
        for part in range(self.config.accumulate):
            asked = time.monotonic()
            windows = next(batches)
            waited += time.monotonic() - asked
            self._accumulate(windows, totals, part == self.config.accumulate - 1)
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        figures = self._means(totals)
        figures |= {"gradient": float(norm), "rate": float(self.scheduler.get_last_lr()[0])}
        if math.isfinite(figures["loss"]) and math.isfinite(figures["gradient"]):
            self.scaler.step(self.optimizer)
            self.averaged.update_parameters(self.model)
            self._in_a_row = 0
        else:
            self.skipped += 1
            self._in_a_row += 1
            if self._in_a_row >= self.config.bad_steps:
                raise RestoreError(
                    f"{self.config.name}: the last {self._in_a_row} steps were not finite, up to "
                    f"step {self.step}; lower learning_rate or look at the data"
                )
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.scheduler.step()
        self.step += 1
        self.waited += waited
        self.worked += time.monotonic() - began
        figures |= {"waiting": self.waited / self.worked, "skipped": float(self.skipped)}
        return figures

    def _accumulate(self, windows: list[Window], totals: dict[str, Tensor], last: bool) -> None:
        """Restore the windows one after the other and add up gradients and figures."""
        share = 1 / (len(windows) * self.config.accumulate)
        before: tuple[Tensor, Tensor] | None = None
        for index, window in enumerate(windows):
            if window.links:
                assert before is not None
                window.fill(before[0].float().cpu().numpy())
            hyperframe = torch.from_numpy(window.hyperframe).to(self.device)
            clean = torch.from_numpy(window.clean).to(self.device)
            final = last and index == len(windows) - 1
            quiet = self.world > 1 and not final
            with self._quiet() if quiet else contextlib.nullcontext():
                output = self._forward(hyperframe)
                terms = self.objective(output, clean, window, before, self.step)
                torch.autograd.backward(self.scaler.scale(terms["loss"] * share))
            before = output.detach(), clean
            with torch.no_grad():
                terms["psnr"] = _psnr(output, clean)
                terms["psnr_noisy"] = _psnr(enlarged_reference(window).to(clean), clean)
                for key, value in terms.items():
                    totals[key] = totals.get(key, torch.zeros(())) + value.detach().cpu() * share

    def _quiet(self) -> contextlib.AbstractContextManager[None]:
        """Keep gradients to this process until the last backward pass of the step."""
        assert isinstance(self.parallel, DistributedDataParallel)
        return self.parallel.no_sync()

    def _means(self, totals: dict[str, Tensor]) -> dict[str, float]:
        """Return the figures of a step as means over all processes: all take the same decisions."""
        values = torch.stack([totals[key] for key in sorted(totals)]).to(self.device)
        if self.world > 1:
            all_reduce(values)
        return dict(zip(sorted(totals), (values / self.world).tolist(), strict=True))

    def _agree(self, wish: bool) -> bool:
        """Return what the first process wishes: clocks differ, and none may wait for the others."""
        if self.world == 1:
            return wish
        said = torch.tensor([wish], dtype=torch.uint8, device=self.device)
        broadcast(said, 0)
        return bool(said)

    def _forward(self, hyperframe: Tensor) -> Tensor:
        kind = {"off": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
        amp: Any = torch.autocast(
            self.device.type, dtype=kind[self.config.amp], enabled=self.config.amp != "off"
        )
        with amp:
            if self.config.checkpointing:
                output = checkpoint(self.parallel, hyperframe, use_reentrant=False)
            else:
                output = self.parallel(hyperframe)
        return output.float()


def _psnr(output: Tensor, clean: Tensor) -> Tensor:
    """Return the mean over the batch of the PSNR of each picture, clipped as a file would."""
    error = (output.clamp(0, 1) - clean).square().mean((1, 2, 3)).clamp_min(1e-8)
    return (-10 * torch.log10(error)).mean()


def _as_it_is(windows: list[Window]) -> list[Window]:
    return windows


def _one_thread(worker: int) -> None:
    import cv2

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
