"""The page that denoises in the browser, as a visitor meets it in headless Chromium."""

import base64
import json
import shutil
import sys
import threading
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from moving_scene import scene

from restore.errors import UsageError
from restore.export import export_onnx
from restore.export.verify import runner
from restore.models import MODELS
from restore.weights import save_model

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "experiments" / "web"), str(ROOT / "tests" / "report")]
import build  # noqa: E402
from webdriver import Browser, find_browser  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_browser() is None, reason="chromium and chromedriver not installed"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm not installed"),
]

DROP = """
const [name, type, content] = %s;
const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
const data = new DataTransfer();
data.items.add(new File([bytes], name, {type}));
dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
"""
DONE = "return document.getElementById('result').dataset.state === 'done'"
TEXT = "return document.getElementById('%s').textContent"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "nano.safetensors"
    kind, config = MODELS["student-nano"]
    save_model(kind(**config), path, {"name": "nano", "model": "student-nano"})
    export_onnx(path, path.with_suffix(".onnx"))
    return path.with_suffix(".onnx")


@pytest.fixture(scope="module")
def page(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    try:
        build.build(str(model), folder)
    except UsageError as error:
        pytest.skip(str(error))
    with build.server(folder, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


@pytest.fixture(params=[1280, 390])
def browser(request, page):
    window = Browser(request.param, dark=request.param < 500)
    try:
        window.log("performance")
        window.open(page)
        window.wait("return document.body.dataset.model === 'ready'", 90)
        yield window
    finally:
        window.close()


def drop(browser: Browser, name: str, kind: str, content: bytes) -> None:
    browser.run(DROP % json.dumps([name, kind, base64.b64encode(content).decode()]))


def shown(browser: Browser, canvas: str) -> np.ndarray:
    address = browser.run(f"return document.getElementById('{canvas}').toDataURL('image/png')")
    content = np.frombuffer(base64.b64decode(address.split(",")[1]), np.uint8)
    return cv2.imdecode(content, cv2.IMREAD_COLOR)[..., ::-1]


def restored(model: Path, noisy: np.ndarray, sigma: list[float]) -> np.ndarray:
    """Return what ONNX Runtime makes of a picture, on the scale of code values."""
    planes = noisy.transpose(2, 0, 1).astype(np.float32) / 255
    levels = np.broadcast_to(np.float32(sigma)[:, None, None] / 255, planes.shape)
    batch = np.concatenate((planes, levels))[None].astype(np.float32)
    return runner(model.read_bytes())(batch)[0].transpose(1, 2, 0).clip(0, 1) * 255


def test_a_picture_is_restored_as_in_onnx_runtime(browser, page, model, tmp_path):
    browser.screenshot(tmp_path / "start.png")
    # Stored losslessly and of odd size; a flat grey part keeps the measured noise honest.
    clean = np.full((181, 245, 3), 0.5, np.float32)
    clean[:, :120] = scene(1, 181, 245)[0][:, :120] / 255
    noise = np.random.default_rng(0).normal(0, 12, clean.shape)
    noisy = np.rint(clean * 255 + noise).clip(0, 255).astype(np.uint8)
    drop(browser, "noisy.png", "image/png", cv2.imencode(".png", noisy[..., ::-1])[1].tobytes())
    browser.wait(DONE, 90)

    sigma = json.loads(browser.run("return document.getElementById('stage').dataset.sigma"))
    assert sigma == pytest.approx([12] * 3, rel=0.15)
    np.testing.assert_array_equal(shown(browser, "before"), noisy)
    difference = np.abs(shown(browser, "after") - restored(model, noisy, sigma))
    assert difference.max() < 1
    assert "245 × 181 pixels," in browser.run(TEXT % "status")
    assert "ms a frame" in browser.run(TEXT % "status")

    # Nothing leaves the machine, nothing sticks out to the side, nothing is complained about.
    assert all(url.startswith((page, "data:", "blob:")) for url in browser.requests(page))
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.log("browser") == []
    browser.screenshot(tmp_path / "done.png")
    before, after = (cv2.imread(str(tmp_path / f"{name}.png")) for name in ("start", "done"))
    assert np.abs(before.astype(int) - after).mean() > 1

    # Another level of noise gives another picture.
    browser.run("const s = document.getElementById('sigma'); s.value = 40; s.oninput()")
    browser.wait("return document.getElementById('stage').dataset.sigma === '[40,40,40]'", 60)
    browser.wait(DONE, 60)
    difference = np.abs(shown(browser, "after") - restored(model, noisy, [40, 40, 40]))
    assert difference.max() < 1


def test_the_slider_moves(browser, page):
    browser.run("document.getElementById('sample').click()")
    browser.wait(DONE, 90)
    left, top, width, height = browser.run(
        "const b = document.getElementById('stage').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]"
    )
    middle = top + height / 2
    browser.drag((left + width * 0.5, middle), (left + width * 0.8, middle))
    share = float(browser.run("return document.getElementById('split').value"))
    assert share == pytest.approx(80, abs=1.5)
    clip = "return getComputedStyle(document.getElementById('before')).clipPath"
    assert "20" in browser.run(clip)


def test_a_clip_is_restored_frame_by_frame(browser, make_clip):
    path = make_clip("clip.webm", frames=6, codec="libvpx", size=(96, 64))
    drop(browser, "clip.webm", "video/webm", path.read_bytes())
    browser.wait(DONE, 120)
    assert "6 of 6 frames" in browser.run(TEXT % "status")
    assert browser.run("return document.getElementById('frame').max") == "5"
    first = shown(browser, "before")
    browser.run("const f = document.getElementById('frame'); f.value = 5; f.oninput()")
    assert np.abs(first.astype(int) - shown(browser, "before")).mean() > 3
    browser.run("document.getElementById('play').click()")
    browser.wait("return document.getElementById('frame').value !== '5'")


def test_what_cannot_be_read_is_said(browser):
    drop(browser, "notes.png", "image/png", b"not a picture")
    browser.wait("return !document.getElementById('error').hidden", 30)
    assert "notes.png: this browser cannot read it" in browser.run(TEXT % "error")
    assert browser.run("return document.getElementById('drop').hidden") is False


def test_only_single_frame_models_are_built_in(tmp_path):
    with pytest.raises(UsageError, match="several frames"):
        build.build("denoise", tmp_path)
