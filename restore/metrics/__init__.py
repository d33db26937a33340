"""Quality figures: fidelity, steadiness, spectrum, perception, and what needs no reference."""

from restore.metrics.fidelity import luma, mse, psnr, psnr_of_mse, ssim, ssim_and_ms_ssim
from restore.metrics.motion import PairMotion, gray8, pair_motion, warping_error
from restore.metrics.perceptual import backbone_at_hand, load_lpips, lpips_distance

__all__ = [
    "PairMotion",
    "backbone_at_hand",
    "gray8",
    "load_lpips",
    "lpips_distance",
    "luma",
    "mse",
    "pair_motion",
    "psnr",
    "psnr_of_mse",
    "ssim",
    "ssim_and_ms_ssim",
    "warping_error",
]
