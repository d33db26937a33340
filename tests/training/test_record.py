from restore.training.record import Best
from restore.weights import load_model


def test_best_weights_stay_when_later_ones_are_worse(trainer) -> None:
    run = trainer(folder="run")
    run.folder.mkdir()
    best = Best(run)
    for step, gain in ((1, 2.0), (2, 3.0), (3, 1.0)):
        run.step = step
        best(run.model, {"val_gain": gain})
    assert best.step == load_model(best.path)[1].origin["step"] == 2


def test_a_resumed_run_knows_its_best(trainer) -> None:
    run = trainer(folder="run")
    run.folder.mkdir()
    run.step = 5
    Best(run)(run.model, {"val_gain": 3.0})
    again = Best(run)
    assert (again.step, again.gain) == (5, 3.0)
    run.step = 0  # a new run in the same folder
    assert Best(run).step == 0
