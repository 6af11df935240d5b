"""Few tokens stay on one thread, many do not, and the number of threads comes back whatever happens."""

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.attention.layer import AbstractLayer
from hardmax.threads import one_thread


class _Watching(AbstractLayer):
    """A layer that moves nothing and notes how many threads there are."""

    seen: list[int]

    def __init__(self):
        self.seen = []

    def step(self, tokens, weights=None):
        self.seen.append(torch.get_num_threads())
        if len(self.seen) > 3:
            raise RuntimeError("enough")
        return tokens


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize(("count", "threads"), [(1, 1), (512, 1), (513, 3)])
def test_few_tokens_are_not_shared_among_threads(count, threads):
    layer = _Watching()
    hm.simulate(np.ones((count, 2)), layer, depth=2)
    assert layer.seen == [threads, threads]
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_threads_come_back_after_a_failure():
    with pytest.raises(RuntimeError, match="enough"):
        hm.simulate(np.ones((3, 2)), _Watching(), depth=9)
    assert torch.get_num_threads() == 3
    hm.equilibrium(np.ones((3, 2)))
    assert torch.get_num_threads() == 3
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
