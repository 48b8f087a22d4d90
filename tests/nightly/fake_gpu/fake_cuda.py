"""A card that is not there: torch's fake tensors on `cuda`, each with its values on the CPU.

Torch's fake tensors say of every operation on which device its result lies, and refuse what mixes devices. They have no
values, though, and methods ask for some. So each carries those of the same operation on the CPU: every method runs
to its end, and what it has learned can be compared. Whatever makes the processor wait for a card is written down with
the line that asked for it.
"""

from __future__ import annotations

import linecache
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

CPU = torch.device("cpu")
CARD = torch.device("cuda", 0)
ROOT = Path(__file__).resolve().parents[3]
LOOPS = {("training_loop.py", "fit"), ("segmentation_learner.py", "_fit"), ("tuning_loop.py", "run")}
aten = torch.ops.aten
# Operations whose result has as many elements as the values say: a card has to be asked how many.
COUNTS = {
    aten.nonzero.default,
    aten.masked_select.default,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.unique_consecutive.default,
    aten.repeat_interleave.Tensor,
    aten.bincount.default,
}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
NO_FAKE = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException)


class Card(FakeTensorMode):
    """Inside, `cuda` is a device.

    waits: how often each line made the processor wait for it. in_loops: the same within a training loop.
    """

    def __init__(self):
        super().__init__(allow_fallback_kernels=False)
        self.waits, self.in_loops = Counter(), Counter()
        self.unfaked = set()
        self.inside = False  # an operation that is made of others
        self.asked = ()  # what the function of torch was given that is being called

    def __deepcopy__(self, memo):
        return self

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.inside:
            return super().__torch_dispatch__(func, types, args, kwargs)
        leaves, shape = tree_flatten((args, kwargs))
        if not any(isinstance(one, FakeTensor) or _is_card(one) for one in leaves):
            found = func(*args, **kwargs)
            if any(getattr(one, "anywhere", False) for one in leaves) and isinstance(found, torch.Tensor):
                found.anywhere = True
            made = not any(isinstance(one, torch.Tensor) for one in leaves)
            if made and isinstance(found, torch.Tensor) and (self.of_card() or _in_transform()):
                found.anywhere = True
            return found
        if func is torch.ops.prim.device.default:
            return CPU  # what torch's own code asks, which has no streams and kernels for a card that is not there
        self.look(func, args, kwargs, leaves)
        real = [one.value if isinstance(one, FakeTensor) else CPU if _is_card(one) else one for one in leaves]
        real_args, real_kwargs = tree_unflatten(real, shape)
        real_kwargs.pop("pin_memory", None)
        self.inside = True
        try:
            faked = [self.faked(one) for one in leaves]
            said_args, said_kwargs = tree_unflatten(faked, shape)
            own = said_kwargs.get("device") == CPU and _is_of_card(leaves)
            if own and (func is not aten._to_copy.default or _in_transform()):
                said_kwargs["device"] = CARD  # torch's own code asked the tensor where it lies
            said = super().__torch_dispatch__(func, types, said_args, said_kwargs)
        except NO_FAKE:
            said = self.common_device(func, leaves)
        finally:
            self.inside = False
        found = func(*real_args, **real_kwargs)
        return self.carried(said, found, leaves, real)

    def of_card(self):
        """Within a function of torch that was given a tensor of the card; what it makes is to lie there, too."""
        return _is_of_card(tree_flatten(self.asked)[0])

    def look(self, func, args, kwargs, leaves):
        """Write down what makes the processor wait."""
        counts = func in COUNTS
        asks = func is aten._local_scalar_dense.default or (func is aten.equal.default)
        target = kwargs.get("device")
        if func in INDEXED and isinstance(args[0], FakeTensor):
            by = [index for index in args[1] if index is not None]
            masked = any(index.dtype in (torch.bool, torch.uint8) for index in by)
            put = func is not aten.index.Tensor
            counts = masked and (not put or isinstance(args[2], FakeTensor))  # a mask and a number: nothing is counted
            brought = any(not isinstance(one, FakeTensor) for one in [*by, *args[2:3]])
            asks = asks or (brought and not masked)  # a list, or a number for some places, is sent while one waits
        down = func is aten._to_copy.default and isinstance(args[0], FakeTensor) and target == CPU
        up = func is aten._to_copy.default and not isinstance(args[0], FakeTensor) and not kwargs.get("non_blocking")
        if func is aten.copy_.default:
            down = isinstance(args[1], FakeTensor) and not isinstance(args[0], FakeTensor)
            up = isinstance(args[0], FakeTensor) and not isinstance(args[1], FakeTensor)
        for name, waits in (("counts", counts), ("asks", asks), ("down", down), ("up", up)):
            if waits:
                line, looped = _innermost()
                self.waits[f"{name} {line}"] += 1
                self.in_loops[f"{name} {line}"] += looped

    def common_device(self, func, leaves):
        """What torch's rule says of an operation that it can't fake: all on one device, but for single numbers."""
        devices = {
            one.device
            for one in leaves
            if isinstance(one, torch.Tensor) and one.dim() and not getattr(one, "anywhere", False)
        }
        assert len(devices) < 2, f"{func} mixes {devices}"
        self.unfaked.add(str(func))

    def carried(self, said, found, leaves, real):
        """The result `found` on the CPU, as tensors of the card wherever `said` says that they lie there."""
        known = {id(value): one for one, value in zip(leaves, real, strict=True) if isinstance(one, FakeTensor)}
        parts, shape = tree_flatten(found)
        where = [None] * len(parts) if said is None else tree_flatten(said)[0]
        assert len(where) == len(parts)
        return tree_unflatten([self.one(a, b, known) for a, b in zip(where, parts, strict=True)], shape)

    def faked(self, one):
        """A tensor of the host without its values: torch's own way of making one leaves a weak reference to it."""
        if not isinstance(one, torch.Tensor) or isinstance(one, FakeTensor):
            return one
        return FakeTensor(self, _like(one), CARD if getattr(one, "anywhere", False) else CPU)

    def one(self, said, value, known):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in known:  # an operation in place
            return known[id(value)]
        if isinstance(said, FakeTensor) and said.fake_device.type == "cpu":
            return value
        with torch.inference_mode(torch.is_inference_mode_enabled() and value.is_inference()):
            said = FakeTensor(self, _like(value), CARD)
        said.value = value
        return said


def _like(value):
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def _is_of_card(leaves):
    return any(isinstance(one, FakeTensor) for one in leaves)


def _in_transform():
    """Within torch.func, whose own code makes tensors on the device that it thinks a card's lie on."""
    frame = sys._getframe(2)
    while frame is not None:
        if "_functorch" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _is_card(one):
    return isinstance(one, torch.device) and one.type == "cuda"


def _innermost():
    """(The line of the project that is being run, whether it is run by a training loop)."""
    frame, line, looped = sys._getframe(2), "elsewhere", False
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and ".venv" not in path.parts and path.name != "fake_cuda.py":
            if line == "elsewhere":
                line = f"{path.name}: {linecache.getline(str(path), frame.f_lineno).strip()}"
            looped = looped or (path.name, frame.f_code.co_name) in LOOPS
        frame = frame.f_back
    return line, looped


class Moves(TorchFunctionMode):
    """`to`, `cpu` and `cuda` by the devices that tensors name: torch's own code thinks that all are the processor's."""

    def __init__(self, made):
        super().__init__()
        self.card = made

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func not in (torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda):
            before, self.card.asked = self.card.asked, (args, kwargs)
            try:
                return func(*args, **kwargs)
            finally:
                self.card.asked = before
        tensor, *rest = args
        if (
            func is torch.Tensor.to
            and (rest or "other" in kwargs)
            and isinstance(other := kwargs.get("other", *rest[:1]), torch.Tensor)
        ):
            kwargs = {name: value for name, value in kwargs.items() if name != "other"}
            rest = [other.device, other.dtype, *rest[1:]]
        copy = kwargs.pop("copy", False)
        if func is torch.Tensor.to:
            device, dtype, non_blocking, layout = torch._C._nn._parse_to(*rest, **kwargs)
        else:
            device, dtype, non_blocking, layout = (CPU if func is torch.Tensor.cpu else CARD), None, False, None
        if device is not None and device.type == "cuda":
            device = CARD
        moves = device is not None and device != tensor.device
        if not moves:
            device = None
            if func is not torch.Tensor.to:
                return tensor
            layout = {} if layout is None else {"memory_format": layout}
            return tensor.to(dtype=dtype or tensor.dtype, non_blocking=non_blocking, copy=copy, **layout)
        return aten._to_copy(
            tensor,
            dtype=dtype,
            device=device,
            non_blocking=non_blocking,
            memory_format=torch.preserve_format if layout is None else layout,
        )


@contextmanager
def card():
    """Inside, `cuda` is a device whose tensors are fake; a Card, which says what waited for it."""
    made = Card()
    free = 8 << 30
    patches = {
        "torch.cuda.mem_get_info": lambda device=None: (free, free),
        "torch.cuda.manual_seed": lambda seed: None,  # draws on the card are those of the processor's generator
        "torch.cuda.get_rng_state": lambda device=None: torch.empty(0),
        "torch.cuda.set_rng_state": lambda state, device=None: None,
        "torch.cuda.device": lambda device: ExitStack(),
        "torch.Tensor.pin_memory": _pin,
        "torch.save": _saved(torch.save),
        "torch.load": _without_card(torch.load),
    }
    with ExitStack() as stack:
        for name, patch in patches.items():
            stack.enter_context(mock.patch(name, patch))
        stack.enter_context(_swapped())
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        stack.enter_context(made)
        stack.enter_context(Moves(made))
        yield made


def _pin(tensor, device=None):
    return tensor.clone()


def _without_card(load):
    def loaded(*args, **kwargs):
        with _disable_current_modes():
            return load(*args, **kwargs)

    return loaded


def _saved(save):
    def values(state, *args, **kwargs):
        with _disable_current_modes():
            save(tree_map_only(FakeTensor, lambda one: one.value, state), *args, **kwargs)

    return values


@contextmanager
def _swapped():
    """A network that is moved keeps its parameters as objects, as it does on a card that is there."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)
