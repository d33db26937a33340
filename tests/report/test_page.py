import json
import re

import numpy as np
import pytest
from moving_scene import scene, with_noise, write_clip

from restore.errors import OutputError
from restore.report import write_report
from restore.report.plots import Line, line_plot, ticks


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of a run on a file whose name would break a careless page."""
    folder = tmp_path_factory.mktemp("report")
    before = write_clip(folder / "a <b> & 'c'.mkv", with_noise(scene(), 10))
    after = write_clip(folder / "</script>after.mkv".replace("/", "_"), scene())
    write_report(folder / "report.html", before, after, command="restore-denoise <in> out")
    return (folder / "report.html").read_text()


def embedded(page):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text[1])


def test_nothing_is_loaded_from_elsewhere(page):
    assert "{{" not in page
    assert not re.findall(r"(?:src|href)=[\"'](?!data:)", page)
    assert not re.findall(r"https?://", page)
    assert "default-src 'none'" in page


def test_names_and_command_are_escaped(page):
    assert "<b>" not in page
    assert "a &lt;b&gt; &amp;" in page
    assert "restore-denoise &lt;in&gt; out" in page
    assert embedded(page)["labels"] == ["a <b> & 'c'.mkv", "<_script>after.mkv"]


def test_pictures_and_windows_are_embedded(page):
    data = embedded(page)
    assert len(data["stills"]) >= 1
    for still in data["stills"]:
        assert len(still["images"]) == 2
        assert all(image.startswith("data:image/webp;base64,") for image in still["images"])
    assert len(data["loops"]) == 2
    assert data["loops"][0]["rate"] == pytest.approx(25)
    assert "What was removed" in page
    assert page.count('class="plot"') >= 3


def test_with_a_reference_both_tables_are_shown(tmp_path):
    clean = write_clip(tmp_path / "clean.mkv", scene(4))
    noisy = write_clip(tmp_path / "noisy.mkv", with_noise(scene(4), 10))
    found = write_report(tmp_path / "r.html", noisy, clean, reference=clean, lpips=False)
    assert [(e.blind, e.output.name) for e in found] == [
        (False, "noisy.mkv"),
        (False, "clean.mkv"),
        (True, "clean.mkv"),
    ]
    page = (tmp_path / "r.html").read_text()
    assert page.count("<table>") == 2
    assert embedded(page)["labels"] == ["clean.mkv", "noisy.mkv", "clean.mkv"]


def test_a_single_frame_has_a_report(tmp_path):
    before = write_clip(tmp_path / "before.mkv", with_noise(scene(1), 10))
    after = write_clip(tmp_path / "after.mkv", scene(1))
    write_report(tmp_path / "r.html", before, after)
    assert len(embedded((tmp_path / "r.html").read_text())["stills"]) == 1


def test_an_existing_file_is_kept(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        write_report(path, "in.mkv", "out.mkv")
    assert path.read_text() == "mine"


@pytest.mark.parametrize("span", [(0, 1), (28.1, 28.4), (-60, -20), (0, 3e-4), (5, 5), (0, 0)])
def test_ticks_are_round_and_few(span):
    found = ticks(*span)
    assert 1 <= len(found) <= 6
    steps = np.diff(found)
    assert np.allclose(steps, steps[0] if len(steps) else 0)
    assert all(float(f"{tick:.4g}") == pytest.approx(tick, abs=1e-12) for tick in found)


def test_a_plot_leaves_out_what_is_no_number():
    line = Line("a", "s1", [0, 1, 2], [1.0, float("nan"), 3.0])
    assert line_plot("t", "s", [line]).count(",") > 0
    assert "nan" not in line_plot("t", "s", [line])
    assert line_plot("t", "s", [Line("a", "s1", [0], [float("nan")])]) == ""


def test_long_curves_are_thinned():
    line = Line("a", "s1", range(10_000), np.ones(10_000))
    path = re.search(r' d="([^"]*)"', line_plot("t", "s", [line]))[1]
    assert path.count("L") < 400
