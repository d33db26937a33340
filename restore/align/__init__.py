"""Align neighbours to the reference: flow, warp, confidence, refinement."""
