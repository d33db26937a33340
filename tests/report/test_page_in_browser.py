"""The report as a reader meets it, in headless Chromium."""

import cv2
import numpy as np
import pytest
from moving_scene import scene, with_noise, write_clip
from webdriver import Browser, find_browser

from restore.report import write_report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_browser() is None, reason="chromium and chromedriver not installed"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    clip = scene(16, 240, 400, 8)
    clean = write_clip(folder / "clean.mkv", clip)
    before = write_clip(folder / "before.mkv", with_noise(clip, 15))
    soft = np.stack([cv2.GaussianBlur(frame, (0, 0), 1) for frame in clip])
    after = write_clip(folder / "after.mkv", soft)
    path = folder / "report.html"
    write_report(
        path,
        before,
        after,
        reference=clean,
        lpips=False,
        command="restore-denoise before.mkv after.mkv",
    )
    return path


@pytest.fixture(params=[1280, 390])
def browser(request, report):
    window = Browser(request.param)
    try:
        window.log("performance")
        window.open(report.as_uri())
        window.wait(
            "return document.querySelectorAll('canvas').length === 6 && "
            "[...document.images].every(i => i.complete && i.naturalWidth > 0)"
        )
        yield window
    finally:
        window.close()


CANVAS = "return document.querySelector('canvas').toDataURL()"


def test_the_page_works_alone(browser, report, tmp_path):
    assert browser.log("browser") == []
    requests = browser.requests(report.as_uri())
    assert report.as_uri() in requests
    assert [url for url in requests if not url.startswith(("data:", report.as_uri()))] == []
    # Nothing sticks out to the side, whatever the width.
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    browser.screenshot(tmp_path / "top.png")
    assert cv2.imread(str(tmp_path / "top.png")).std() > 20


def test_the_slider_moves(browser, tmp_path):
    browser.run("document.getElementById('compare').scrollIntoView({block: 'center'})")
    box = browser.run(
        "const b = document.querySelector('.stack').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]"
    )
    middle = box[1] + box[3] / 2
    clip = "return getComputedStyle(document.querySelector('img.top')).clipPath"
    before = browser.run(clip)
    browser.screenshot(tmp_path / "before.png")
    browser.drag((box[0] + box[2] * 0.5, middle), (box[0] + box[2] * 0.9, middle))
    assert float(browser.run("return document.getElementById('split').value")) == pytest.approx(
        90, abs=1.5
    )
    assert browser.run(clip) != before
    browser.screenshot(tmp_path / "after.png")
    old, new = (cv2.imread(str(tmp_path / f"{name}.png")) for name in ("before", "after"))
    left, right = (round(box[0] + box[2] * share) for share in (0.6, 0.8))
    rows = slice(round(box[1]) + 40, round(box[1] + box[3]) - 40)
    assert np.abs(old[rows, left:right].astype(int) - new[rows, left:right]).mean() > 1
    browser.run("const s = document.getElementById('split'); s.value = 10; s.oninput()")
    assert "10%" in browser.run("return document.getElementById('compare').style.cssText")


def test_the_clips_play_and_pause(browser):
    first = browser.run(CANVAS)
    browser.wait(f"return (() => {{ {CANVAS} }})() !== {first!r}")
    browser.run("document.getElementById('play').click()")
    still = browser.run(CANVAS)
    browser.run("return new Promise(done => setTimeout(done, 300))")
    assert browser.run(CANVAS) == still
    assert (
        browser.run("return document.querySelector('canvas').getBoundingClientRect().width") == 320
    )


def test_other_frames_and_sources_can_be_chosen(browser):
    source = "return document.querySelector('img.bottom').src"
    first = browser.run(source)
    browser.run("const s = document.getElementById('right'); s.value = 1; s.onchange()")
    assert browser.run(source) != first
    assert browser.run("return document.querySelector('.tag.r').textContent") == "before.mkv"
    browser.run("document.getElementById('frames').lastChild.click()")
    assert (
        browser.run(
            "return document.getElementById('frames').lastChild.getAttribute('aria-pressed')"
        )
        == "true"
    )
