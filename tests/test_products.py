"""Products through oneDNN equal those of torch's default library, with their gradients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from dragoman.nn import products
from dragoman.nn.int8 import has_int8_products
from dragoman.nn.layers import empty_linear
from dragoman.nn.packed import pack_float32
from dragoman.nn.products import add_linear, linear, matmul, prefers_onednn
from dragoman.training.precision import has_fast_bfloat16

ROWS, INPUTS, OUTPUTS = 40, 48, 56
AMD = {"cpu_name": "AMD EPYC", "avx512_f": True}

onednn = pytest.mark.skipif(
    not (hasattr(torch.ops.mkldnn, "_linear_pointwise") and torch.backends.mkldnn.is_available()),
    reason="torch was built without oneDNN",
)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Use oneDNN for products of all sizes. Return the shapes of the inputs that it multiplied."""
    shapes: list[tuple[int, ...]] = []
    onednn_linear = products._onednn_linear

    def record(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
        shapes.append(tuple(x.shape))
        return onednn_linear(x, W, b)

    monkeypatch.setattr(products, "prefers_onednn", lambda: True)
    monkeypatch.setattr(products, "MIN_SIZE", 0)
    monkeypatch.setattr(products, "MIN_INNER", 0)
    monkeypatch.setattr(products, "_onednn_linear", record)
    return shapes


def tensors(*shapes: tuple[int, ...], requires_grad: bool = False) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(shape, generator=generator).requires_grad_(requires_grad) for shape in shapes)


@onednn
@pytest.mark.parametrize("rows", [(ROWS,), (5, 8), (2, 4, 5)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_values_and_gradients_are_those_of_torch(
    rows: tuple[int, ...], has_bias: bool, calls: list[tuple[int, ...]]
) -> None:
    x, W, b = tensors((*rows, INPUTS), (OUTPUTS, INPUTS), (OUTPUTS,), requires_grad=True)
    operands = (x, W, b) if has_bias else (x, W)
    results = []
    for function in (linear, functional.linear):
        y = function(*operands)
        results.append((y, *torch.autograd.grad(y.square().sum(), operands)))
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-4)
    assert calls == [(ROWS, INPUTS), (ROWS, OUTPUTS), (INPUTS, ROWS)]  # y, dx, the transpose of dW


@onednn
def test_only_the_gradients_that_are_needed_are_computed(calls: list[tuple[int, ...]]) -> None:
    x, W = tensors((ROWS, INPUTS), (OUTPUTS, INPUTS))
    linear(x.requires_grad_(), W).sum().backward()
    assert calls == [(ROWS, INPUTS), (ROWS, OUTPUTS)]
    assert W.grad is None


@onednn
def test_a_linear_layer_uses_the_same_product(calls: list[tuple[int, ...]]) -> None:
    layer = empty_linear(INPUTS, OUTPUTS)
    x, W, b = tensors((ROWS, INPUTS), (OUTPUTS, INPUTS), (OUTPUTS,))
    layer.load_state_dict({"weight": W, "bias": b})
    with torch.no_grad():
        torch.testing.assert_close(layer(x), functional.linear(x, W, b), rtol=1e-5, atol=1e-4)
    assert calls == [(ROWS, INPUTS)]


@onednn
def test_sums_and_transposed_operands(calls: list[tuple[int, ...]]) -> None:
    p, x, W = tensors((ROWS, OUTPUTS), (ROWS, INPUTS), (OUTPUTS, INPUTS))
    torch.testing.assert_close(add_linear(p, x, W), p + x @ W.t(), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(matmul(p.t(), x), p.t() @ x, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(matmul(p, W), p @ W, rtol=1e-5, atol=1e-4)
    assert len(calls) == 3


@onednn
@pytest.mark.parametrize("bias", [torch.arange(2.0 * OUTPUTS)[::2], torch.ones(1).expand(OUTPUTS)])
def test_biases_with_strides(bias: Tensor, calls: list[tuple[int, ...]]) -> None:
    x, W = tensors((ROWS, INPUTS), (OUTPUTS, INPUTS))
    torch.testing.assert_close(linear(x, W, bias), functional.linear(x, W, bias), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(pack_float32(W, bias)(x), functional.linear(x, W, bias), rtol=1e-5, atol=1e-4)
    assert len(calls) >= 1


def test_what_onednn_cannot_compute_is_left_to_torch(calls: list[tuple[int, ...]]) -> None:
    x, W = tensors((ROWS, INPUTS), (OUTPUTS, INPUTS))
    assert torch.equal(linear(x[0], W), functional.linear(x[0], W))
    assert torch.equal(linear(x, W, torch.ones(1)), functional.linear(x, W, torch.ones(1)))
    with pytest.raises(RuntimeError, match="40x48 and 56x48"):
        linear(x, W.t())
    assert not calls


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_are_left_to_torch(dtype: torch.dtype, calls: list[tuple[int, ...]]) -> None:
    x, W = (tensor.to(dtype) for tensor in tensors((ROWS, INPUTS), (OUTPUTS, INPUTS)))
    assert torch.equal(linear(x, W), functional.linear(x, W))
    assert torch.equal(matmul(x, W.t()), x @ W.t())
    assert not calls


def test_autocast_has_its_own_products(calls: list[tuple[int, ...]]) -> None:
    x, W = tensors((ROWS, INPUTS), (OUTPUTS, INPUTS))
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, W).dtype == torch.bfloat16
    assert not calls


def test_exported_models_have_products_of_all_processors(calls: list[tuple[int, ...]]) -> None:
    layer = empty_linear(INPUTS, OUTPUTS)
    program = torch.export.export(layer, (torch.zeros(ROWS, INPUTS),))
    assert "mkldnn" not in program.graph_module.code
    assert "linear" in program.graph_module.code
    assert not calls


@onednn
@pytest.mark.filterwarnings("ignore:TF32")  # which the context manager sets
def test_function_transforms_and_a_disabled_onednn_get_the_products_of_torch(calls: list[tuple[int, ...]]) -> None:
    x, W = tensors((ROWS, INPUTS), (OUTPUTS, INPUTS))
    gradient = torch.func.grad(lambda W: linear(x, W).sum())(W)
    torch.testing.assert_close(gradient, x.sum(dim=0).expand_as(W))
    torch.testing.assert_close(torch.vmap(lambda x: linear(x[None], W)[0])(x), functional.linear(x, W))
    with torch.backends.mkldnn.flags(enabled=False):
        assert torch.equal(linear(x, W), functional.linear(x, W))
    assert not calls


def test_small_products_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*operands: Tensor | None) -> Tensor:
        raise AssertionError("a small product went to oneDNN")

    monkeypatch.setattr(products, "prefers_onednn", lambda: True)
    monkeypatch.setattr(products, "_onednn_linear", fail)
    x, W = tensors((ROWS, INPUTS), (OUTPUTS, INPUTS))
    assert torch.equal(linear(x, W), functional.linear(x, W))


@onednn
@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (AMD, True),
        ({**AMD, "cpu_name": "Intel(R) Xeon(R) Platinum 8480+"}, False),  # MKL uses all instructions of these
        ({**AMD, "avx512_f": False}, False),
        ({"avx512_f": True}, False),  # unknown
        ({}, False),
    ],
)
def test_the_processor_decides(
    capabilities: dict[str, object], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert prefers_onednn.__wrapped__() is expected
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert prefers_onednn.__wrapped__() is False


def test_versions_of_torch_that_do_not_report_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert prefers_onednn.__wrapped__() is False
    assert not has_int8_products()
    assert not has_fast_bfloat16.__wrapped__("cpu")
