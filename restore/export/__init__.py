"""Export networks for other runtimes: ONNX files and programs of `torch.export`, checked."""

from restore.export.files import PRECISIONS, export_onnx, export_program
from restore.export.verify import check, latency, quality

__all__ = ["PRECISIONS", "check", "export_onnx", "export_program", "latency", "quality"]
