"""Networks this small are fastest on one thread, and a machine that is busy otherwise makes many threads wait."""

import pytest
import torch

__all__ = ["one_thread"]


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
