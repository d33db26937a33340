import pytest
import torch
from torch import nn

from restore.models.blocks import AlongTime, enter


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
