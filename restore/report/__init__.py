"""The HTML report: one file to look at, with pictures, moving windows, curves and figures."""

from restore.report.page import check_writable, render_report, write_report

__all__ = ["check_writable", "render_report", "write_report"]
