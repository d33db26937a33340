import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from moving_scene import scene, with_noise, write_clip

from restore.cli.evaluate import main


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command")
    return {
        "clean": str(write_clip(folder / "clean.mkv", scene(5))),
        "noisy": str(write_clip(folder / "noisy.mkv", with_noise(scene(5), 12))),
    }


def test_table(files, capsys):
    assert main([files["clean"], files["noisy"], files["clean"], "--no-lpips"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("PSNR (dB)"))
    assert row.split()[3] == "99.00"
    assert "noisy.mkv: static places flicker" in out


def test_json_has_mean_and_frames(files, capsys):
    assert main([files["clean"], files["noisy"], "--json", "--no-lpips"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"psnr", "psnr_y", "ssim", "warp", "flicker", "ghosting"} <= found["mean"].keys()
    assert found["mean"]["lpips"] is None
    assert len(found["frames"]) == 5
    assert np.mean([f["psnr"] for f in found["frames"]]) == pytest.approx(found["mean"]["psnr"])


def test_json_of_several_outputs_is_a_list(files, capsys):
    assert main([files["clean"], files["noisy"], files["clean"], "--json", "--no-lpips"]) == 0
    assert [x["mean"]["psnr"] for x in json.loads(capsys.readouterr().out)][1] == 99


def test_csv_has_a_line_a_frame(files, capsys):
    assert main([files["noisy"], files["clean"], "--no-reference", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 5
    assert float(rows[1]["removed"]) == pytest.approx(12, rel=0.1)


def test_report_is_written_once(files, tmp_path, capsys):
    page = tmp_path / "report.html"
    arguments = [files["clean"], files["noisy"], "--no-lpips", "--html", str(page)]
    assert main(arguments) == 0
    assert "restore-evaluate" in page.read_text()
    assert main(arguments) == 4
    assert "exists already" in capsys.readouterr().err
    assert main([*arguments, "--overwrite"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["{clean}", "missing.mkv"], 3, "missing.mkv"),
        (["{clean}", "{noisy}", "--every", "0"], 2, "--every"),
        (["{clean}", "{noisy}", "--no-reference", "--lpips"], 2, "--lpips"),
        (["{clean}", "{noisy}", "--html", "no/such/folder/x.html"], 4, "folder"),
    ],
)
def test_errors_are_one_line_with_their_code(files, capsys, arguments, code, text):
    assert main([argument.format(**files) for argument in arguments]) == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert text in lines[0]


def test_a_missing_file_name_is_one_line(files, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([files["clean"]])
    (line,) = capsys.readouterr().err.splitlines()
    assert "OUTPUT" in line


def test_the_command_runs_without_loading_torch(files):
    script = (
        "import sys; from restore.cli.evaluate import main; "
        f"code = main([{files['clean']!r}, {files['noisy']!r}, '--no-lpips']); "
        "sys.exit(code or 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "SSIM" in done.stdout


def test_a_run_writes_its_report(files, tmp_path, capsys):
    from restore.cli.denoise import main as denoise

    page, target = tmp_path / "report.html", tmp_path / "out.mkv"
    arguments = [files["noisy"], str(target), "--report", str(page), "--preset", "fast"]
    assert denoise(arguments) == 0
    assert "restore-denoise" in page.read_text()
    assert str(page) in capsys.readouterr().err
    target.unlink()
    assert denoise(arguments) == 4, "an existing report is refused before the work"
    assert not target.exists()
    with pytest.raises(SystemExit, match="2"):
        denoise([*arguments, "--compare"])
