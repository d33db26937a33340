import json
import sys
from pathlib import Path

from outside import run

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def row(peer, level, psnr, seconds, clip):
    return {
        "clip": clip, "case": "awgn8", "level": level, "peer": peer, "psnr": psnr,
        "cpu_s": seconds, "megapixels": 2.0,
    }  # fmt: skip


def test_curve(tmp_path):
    peers = {"noisy": 0.0, "ffmpeg-nlmeans": 4.0, "product": 6.0}
    rows = [
        row(peer, level, 30.0 + number, seconds, clip)
        for peer, seconds in peers.items()
        for number, level in enumerate(("10", "30"))
        for clip in "ab"
    ]
    (tmp_path / "run.json").write_text(json.dumps({"rows": rows}))
    script = EXPERIMENTS / "figures.py"
    run(sys.executable, script, "run.json", "--out", "cost.svg", cwd=tmp_path)
    drawn = (tmp_path / "cost.svg").read_text()
    assert "restore" in drawn
    assert "nlmeans" in drawn
    assert "noisy" not in drawn
