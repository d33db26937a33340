import pytest
import torch
from torch import nn

from restore.models import Denoiser
from restore.models.blocks import AlongTime, enter, load_shallower


@pytest.mark.parametrize("channels", [5, 8, 19])
def test_empty_channels_change_nothing(channels: int) -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(channels, 4, 3, padding=1)
    x = torch.rand(2, channels, 6, 7)
    torch.testing.assert_close(enter(layer, x), layer(x))


@pytest.mark.parametrize("reach", [0, 1])
def test_along_time_is_a_3d_convolution(reach: int) -> None:
    torch.manual_seed(0)
    layer = AlongTime(3, 4, reach=reach)
    x = torch.rand(2, 3, 5, 6, 7)
    torch.testing.assert_close(layer(x), nn.Conv3d.forward(layer, x))


def test_a_deeper_network_starts_with_the_answers_of_a_shallower_one() -> None:
    torch.manual_seed(0)
    shallow = Denoiser(stem=4, channels=(8, 8), blocks=(1, 1))
    deep = Denoiser(stem=4, channels=(8, 8), blocks=(2, 3))
    load_shallower(deep, shallow.state_dict())
    x = torch.rand(1, 3 * 8, 16, 16)
    torch.testing.assert_close(deep(x), shallow(x))
    deep(x).sum().backward()
    assert deep.trunk.down[1][2].second.weight.grad.abs().max() > 0


def test_weights_of_another_network_are_refused() -> None:
    narrow = Denoiser(stem=4, channels=(8, 8), blocks=(1, 1))
    for other in (
        Denoiser(stem=4, channels=(8, 16), blocks=(1, 1)),
        Denoiser(stem=4, channels=(8,), blocks=(1,)),
        Denoiser(stem=4, channels=(8, 8), blocks=(2, 1)),
    ):
        with pytest.raises(RuntimeError):
            load_shallower(narrow, other.state_dict())
