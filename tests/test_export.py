"""Exported files: free sizes, equal to PyTorch, described, small, refused when wrong."""

import hashlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from restore.cli import export as command
from restore.engine import load_engine
from restore.errors import RestoreError, UsageError
from restore.export import check, export_onnx, export_program
from restore.export.graph import example, halve, quantise, to_proto
from restore.export.verify import latency, pictures, quality, runner
from restore.models import MODELS, Denoiser, Student
from restore.weights import entries, load_model, save_model


@pytest.fixture(scope="module")
def student_file(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "small.safetensors"
    config = {"channels": (8, 16), "blocks": (1, 1)}
    save_model(
        Student(**config), path, {"name": "small", "model": "student-nano", "config": config}
    )
    return path


@pytest.fixture(scope="module")
def student_onnx(student_file):
    path = student_file.with_suffix(".onnx")
    assert command.main([str(student_file), "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def denoiser():
    torch.manual_seed(0)
    return Denoiser(stem=4, channels=(8, 8), blocks=(0, 0)).eval()


@pytest.fixture(scope="module")
def graph(denoiser):
    return to_proto(denoiser)


def metadata(path) -> dict[str, str]:
    return {prop.key: prop.value for prop in onnx.load(path).metadata_props}


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 9, 14), (1, 33, 18), (3, 16, 16)])
def test_student_takes_any_batch_and_size(student_file, student_onnx, shape):
    batch, height, width = shape
    session = onnxruntime.InferenceSession(student_onnx)
    assert [i.name for i in session.get_inputs()] == ["noisy"]
    assert [o.name for o in session.get_outputs()] == ["clean"]
    model = load_model(student_file)[0]
    noisy = example(model, 1, height, width, batch)
    with torch.inference_mode():
        expected = model(noisy).numpy()
    (got,) = session.run(None, {"noisy": noisy.numpy()})
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (1, 3, 7, 9), (2, 5, 21, 26), (1, 7, 16, 12), (1, 2, 5, 8)]
)
def test_denoiser_takes_any_batch_slots_and_size(denoiser, graph, shape):
    batch, slots, height, width = shape
    hyperframe = example(denoiser, slots, height, width, batch)
    with torch.inference_mode():
        expected = denoiser(hyperframe).numpy()
    got = runner(graph.SerializeToString())(hyperframe.numpy())
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_the_file_says_what_it_is(student_file, student_onnx):
    known = metadata(student_onnx)
    assert known["name"] == "small"
    assert known["kind"] == "single-frame"
    assert known["precision"] == "fp32"
    assert known["scale"] == "1"
    assert known["format"] == "1"
    assert known["range"] == "RGB in [0, 1]"
    assert known["sigma"] == "standard deviation in [0, 1]"
    assert known["sha256"] == hashlib.sha256(student_file.read_bytes()).hexdigest()
    opset = {entry.domain: entry.version for entry in onnx.load(student_onnx).opset_import}
    assert opset[""] == 18
    text = student_onnx.read_bytes()
    assert b"site-packages" not in text
    assert b".py" not in text


def test_half_size_weights_lose_nothing_that_a_file_had(student_file, student_onnx):
    small = onnx.load(student_onnx)
    halve(small)
    content = small.SerializeToString()
    assert len(content) < 0.75 * student_onnx.stat().st_size
    model = load_model(student_file)[0]
    assert max(check(model, content, tolerance=1e-5).values()) < 1e-5


def test_a_wrong_export_is_refused(student_file, student_onnx):
    wrong = onnx.load(student_onnx)
    bias = next(t for t in wrong.graph.initializer if t.name == "answer.bias")
    values = onnx.numpy_helper.to_array(bias).copy()
    values[0] += 0.1
    bias.CopyFrom(onnx.numpy_helper.from_array(values, bias.name))
    with pytest.raises(RestoreError, match=r"is off by .* at 1x16x16"):
        check(load_model(student_file)[0], wrong.SerializeToString())


def test_eight_bits_stay_close(student_file, student_onnx):
    proto = quantise(onnx.load(student_onnx), [noisy for _, noisy in pictures([], range(3))])
    model, content = load_model(student_file)[0], proto.SerializeToString()
    assert abs(quality(model, content)["dB lost"]) <= 0.2
    assert sum(node.op_type == "QuantizeLinear" for node in proto.graph.node) >= 8
    made_by = {output: node.op_type for node in proto.graph.node for output in node.output}
    sums = [set(map(made_by.get, n.input)) for n in proto.graph.node if n.op_type == "Add"]
    assert any("ReduceMean" in made for made in sums), "a variance in 8 bits may become 0"
    scales = [t for t in proto.graph.initializer if t.name.endswith("weight_scale")]
    assert any(np.prod(scale.dims) > 1 for scale in scales), "each channel has its own scale"
    run = runner(content)
    for _, noisy in pictures([], [99]):
        with torch.inference_mode():
            expected = model(torch.from_numpy(noisy)).numpy()
        difference = np.abs(run(noisy) - expected)
        assert 0 < difference.mean() < 0.02


def test_a_loss_of_quality_is_refused(student_file, student_onnx):
    model = load_model(student_file)[0]
    assert abs(quality(model, student_onnx.read_bytes())["dB lost"]) < 1e-3
    worse = onnx.load(student_onnx)
    bias = next(t for t in worse.graph.initializer if t.name == "answer.bias")
    values = onnx.numpy_helper.to_array(bias).copy()
    values[:12] += 1.0  # a correction where none is due
    bias.CopyFrom(onnx.numpy_helper.from_array(values, bias.name))
    with pytest.raises(RestoreError, match="8 bits cost"):
        quality(model, worse.SerializeToString())


@pytest.mark.slow
def test_a_program_for_pytorch_runs_without_restore(student_file, tmp_path):
    path = tmp_path / "small.pt2"
    assert max(export_program(student_file, path).values()) < 1e-5
    code = (
        "import sys, torch; program = torch.export.load(sys.argv[1]).module(check_guards=False);"
        "print(tuple(program(torch.rand(1, 6, 19, 24)).shape), 'restore' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split("\n")[0] == "(1, 3, 19, 24) False", done.stderr


def test_the_command_refuses_in_one_line(student_file, student_onnx, tmp_path, capsys):
    assert command.main([str(student_file), "--out", str(student_onnx)]) == 4
    assert "--overwrite" in capsys.readouterr().err
    assert command.main([str(student_file), "--out", str(tmp_path / "small.txt")]) == 2
    assert "end in .onnx" in capsys.readouterr().err
    assert command.main(["nothing-known", "--out", str(tmp_path / "x.onnx")]) == 6
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "x.onnx").exists()


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_the_command_writes_and_reports(student_file, tmp_path, capsys, precision):
    out = tmp_path / "small.onnx"
    assert command.main([str(student_file), "--out", str(out), f"--{precision}", "--check"]) == 0
    printed = capsys.readouterr().out
    assert f"{out}:" in printed
    assert "dB lost" in printed if precision == "int8" else "from PyTorch at 3x37x51" in printed
    assert "ONNX Runtime 1920x1080, one thread:" in printed
    assert metadata(out)["precision"] == precision


def test_multi_frame_networks_are_not_put_into_eight_bits(tmp_path):
    kind, config = MODELS["denoiser-tiny"]
    weights = tmp_path / "tiny.safetensors"
    save_model(kind(**config), weights, {"name": "tiny", "model": "denoiser-tiny"})
    with pytest.raises(UsageError, match="single-frame"):
        export_onnx(weights, tmp_path / "tiny.onnx", precision="int8")


@pytest.mark.slow
def test_time_is_measured_for_both_sizes_and_runtimes(student_file, student_onnx):
    times = latency(load_model(student_file)[0], student_onnx.read_bytes(), repeats=1)
    assert len(times) == 4
    for runtime in ("PyTorch", "ONNX Runtime"):
        assert times[f"{runtime} 1920x1080"] > times[f"{runtime} 854x480"] > 0


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_published_files_say_how_far_their_network_sees(entry):
    told = load_model(entry.name)[0].margin
    for name in entry.files:
        if name.endswith(".onnx"):
            assert load_engine(entry.name, runtime="onnx").margin == told
