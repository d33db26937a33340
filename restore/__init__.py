"""Restore video: denoising and super-resolution that touches nothing else in the file."""

__version__ = "0.1.0"
