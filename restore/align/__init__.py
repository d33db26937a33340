"""Align neighbours to the reference: flow, warp, confidence, refinement."""

from restore.align.fine import FineAligner, aligner_for
from restore.align.flow import FLOWS, DISFlow, FlowEstimator, RAFTFlow
from restore.align.guided import GuidedAligner
from restore.align.refine import Aligned, Aligner, Motion, View, half_variance, warp_full
from restore.align.warp import warp, warp_torch

__all__ = [
    "FLOWS",
    "Aligned",
    "Aligner",
    "DISFlow",
    "FineAligner",
    "FlowEstimator",
    "GuidedAligner",
    "Motion",
    "RAFTFlow",
    "View",
    "aligner_for",
    "half_variance",
    "warp",
    "warp_full",
    "warp_torch",
]
