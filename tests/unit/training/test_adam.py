"""Adam's steps, against those of torch."""

import numpy as np
import pytest

from ranmask.training.table_learning import Adam


def test_the_first_step_is_the_rate():
    parameter = np.zeros(3)
    Adam(parameter).step(np.array([5.0, -0.01, 0.0]), 0.1)
    assert parameter == pytest.approx([-0.1, 0.1, 0])


def test_what_has_no_gradient_keeps_moving():
    parameter = np.zeros(1)
    adam = Adam(parameter)
    adam.step(np.ones(1), 0.1)
    before = parameter.copy()
    adam.step(np.zeros(1), 0.1)
    assert parameter < before


def test_steps_are_those_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    parameter = rng.normal(size=(3, 4))
    expected = torch.tensor(parameter, requires_grad=True)
    adam, optimiser = Adam(parameter), torch.optim.Adam([expected], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 50)
    for step in range(50):
        gradient = rng.normal(size=(3, 4)) * (rng.random((3, 4)) < 0.3)
        expected.grad = torch.tensor(gradient)
        adam.step(gradient, 0.05 * (1 + np.cos(np.pi * step / 50)) / 2)
        optimiser.step()
        schedule.step()
        assert parameter == pytest.approx(expected.detach().numpy(), abs=1e-12)
