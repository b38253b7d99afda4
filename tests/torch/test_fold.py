"""The fold equals ``linear(x * gamma)``, and what a mask hands on behaves as any tensor."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tamiz.torch import FeatureMask, folded_linear
from tamiz.torch.fold import BLOCK, SMALL, DeferredProduct, masked


class Doubled(torch.autograd.Function):
    """Someone else's autograd function: it takes the tensor past Python's hooks."""

    @staticmethod
    def forward(ctx, value):
        return value * 2

    @staticmethod
    def backward(ctx, slope):
        return slope * 2


@pytest.fixture(autouse=True)
def nothing_is_tiny(monkeypatch):
    """The small inputs here are folded too."""
    monkeypatch.setattr("tamiz.torch.fold.TINY", 0)


def parts(n_features=6, n_outputs=3, leading=(4,), dtype=torch.float64, bias=True):
    torch.manual_seed(0)
    x = torch.randn(*leading, n_features, dtype=dtype)
    gamma = torch.rand(n_features, dtype=dtype, requires_grad=True)
    weight = torch.randn(n_outputs, n_features, dtype=dtype, requires_grad=True)
    return x, gamma, weight, torch.randn(n_outputs, dtype=dtype, requires_grad=True) if bias else None


@pytest.fixture
def mask():
    torch.manual_seed(0)
    mask = FeatureMask(6, 2)
    mask.attach(torch.optim.SGD([mask.gamma], lr=0.1))  # a mask that is not attached sends no gradient to gamma
    with torch.no_grad():
        mask.gamma.copy_(torch.rand(6))
    return mask


@pytest.fixture
def x():
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(1))


def gradient_of(function, mask, x):
    """The gradient of gamma for ``function`` applied to what the mask gives, and to the plain product."""
    gradients = []
    for product in (mask(x), x * mask.gamma):
        mask.gamma.grad = None
        function(product).sum().backward()
        gradients.append(mask.gamma.grad)
    return gradients


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("leading", "n_features"),
    [((7,), 6), ((2, 5), 6), ((2, 1, 3), 6), ((1,), 1), ((0,), 6), ((3,), 2 * BLOCK + 1), ((3,), SMALL)],
)
def test_values_and_all_gradients_equal_the_plain_form(dtype, bias, leading, n_features):
    x, gamma, weight, offset = parts(n_features, leading=leading, dtype=dtype, bias=bias)
    inputs = [t for t in (gamma, weight, offset) if t is not None]
    slope = torch.randn(*leading, 3, dtype=dtype)
    folded = folded_linear(x, gamma, weight, offset)
    plain = functional.linear(x * gamma, weight, offset)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
    torch.testing.assert_close(folded, plain, **tolerance)
    for ours, theirs in zip(torch.autograd.grad(folded, inputs, slope), torch.autograd.grad(plain, inputs, slope)):
        torch.testing.assert_close(ours, theirs, **tolerance)


DERIVED = {
    "folded": lambda x, gamma, weight, bias: folded_linear(x, gamma, weight, bias),
    "deferred": lambda x, gamma, weight, bias: Doubled.apply(masked(x, gamma)) @ weight.t() + bias,
}


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize("leading", [(4,), (2, 3)])
def test_first_and_second_derivatives_are_those_of_finite_differences(name, leading):
    x, *inputs = parts(leading=leading)
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(lambda *inputs: DERIVED[name](x, *inputs), tuple(inputs))


def test_a_linear_layer_takes_the_folded_path_and_the_product_is_never_made(mask, x):
    layer = nn.Linear(6, 3)
    product = mask(x)
    assert isinstance(product, DeferredProduct)
    assert (product.shape, product.dim(), len(product), product.dtype) == ((4, 6), 2, 4, torch.float32)
    out = layer(product)
    assert product._product is None
    torch.testing.assert_close(out, functional.linear(x * mask.gamma, layer.weight, layer.bias))


def test_the_gradient_of_the_input_is_never_computed(mask, x):
    """No node of the graph behind the output leads to the input or to a product of its size."""
    out = nn.Linear(6, 3)(mask(x))
    names, open_nodes = [], [out.grad_fn]
    while open_nodes:
        node = open_nodes.pop()
        names.append(node.name())
        open_nodes += [after for after, _ in node.next_functions if after is not None]
    assert names.count("torch::autograd::AccumulateGrad") == 3
    assert not any("Defer" in name for name in names)
    wide = FeatureMask(2000, 2)
    wide.attach(torch.optim.SGD([wide.gamma], lr=0.1))
    node = nn.Linear(2000, 40)(wide(torch.randn(4, 2000))).grad_fn
    assert node.name() == "_FoldedLinearBackward"
    assert [after.name() for after, _ in node.next_functions if after] == ["torch::autograd::AccumulateGrad"] * 3


@pytest.mark.parametrize(
    "use",
    [
        lambda y: y[1:, ::2],
        lambda y: torch.cat([y, y]),
        lambda y: torch.stack(tensors=[y, y]),
        lambda y: y.flatten(),
        lambda y: y.unsqueeze(0).permute(1, 2, 0).contiguous(),
        lambda y: functional.conv1d(y[:, None], torch.ones(1, 1, 3)),
        lambda y: torch.einsum("ij,kj->ik", y, y),
        lambda y: y @ torch.ones(6, 2),
        lambda y: torch.stack(list(y)),
        lambda y: functional.linear(torch.ones(2, 6), y),
        lambda y: functional.linear(y, weight=torch.ones(3, 6), bias=torch.ones(3)),
        lambda y: functional.linear(input=y, weight=torch.ones(3, 6)),
        lambda y: functional.bilinear(y, y, torch.ones(2, 6, 6)),
        lambda y: nn.functional.layer_norm(y, (6,)),
        lambda y: functional.linear(y, torch.eye(6)) + y,
        lambda y: y + functional.linear(y, torch.eye(6)),
        lambda y: functional.relu(y, inplace=True),
        lambda y: functional.linear(y.mul_(3.0), torch.eye(6)),
        lambda y: (y.mul_(3.0), functional.linear(y, torch.eye(6)))[1],
        lambda y: Doubled.apply(y),
        lambda y: checkpoint(lambda z: functional.linear(z, torch.eye(6)).tanh(), y, use_reentrant=True),
        lambda y: checkpoint(lambda z: functional.linear(z, torch.eye(6)).tanh(), y, use_reentrant=False),
        lambda y: torch.func.vmap(torch.sum)(y),
        lambda y: y.double().exp(),
        lambda y: torch.where(y > 0, y, -y),
        lambda y: y.clone(),
    ],
)
def test_odd_uses_give_the_values_and_the_gradient_of_the_plain_product(mask, x, use):
    torch.testing.assert_close(use(mask(x)), use(x * mask.gamma))
    ours, theirs = gradient_of(use, mask, x)
    torch.testing.assert_close(ours, theirs)


def test_a_look_without_gradients_does_not_cut_the_graph(mask, x):
    def peek(product):
        with torch.no_grad():
            assert not product.mean().requires_grad
        with torch.inference_mode():
            product.std()
        return product * product

    ours, theirs = gradient_of(peek, mask, x)
    torch.testing.assert_close(ours, theirs)


def test_a_change_of_the_input_before_the_product_is_used_is_noticed(mask, x):
    product = mask(x)
    x.add_(1.0)
    with pytest.raises(RuntimeError, match="changed in place before the mask's output was used"):
        nn.Linear(6, 2)(product)


def test_it_prints_saves_and_copies_as_a_tensor(mask, x):
    product = mask(x)
    assert str(product) == str(x * mask.gamma)
    assert product.tolist() == (x * mask.gamma).tolist()
    assert (product.detach().numpy() == (x * mask.gamma).detach().numpy()).all()
    assert torch.equal(copy.deepcopy(product.detach()), x * mask.gamma)
    with pytest.raises(RuntimeError, match=r"detach\(\)\.numpy\(\)"):
        product.numpy()
    file = io.BytesIO()
    torch.save(product, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    assert type(loaded) is torch.Tensor
    assert torch.equal(loaded, x * mask.gamma)


def test_it_passes_module_hooks(mask, x):
    seen = []
    mask.register_forward_hook(lambda module, args, output: seen.append(float(output.detach().sum())))
    mask.register_full_backward_hook(lambda module, before, after: seen.append(after[0].shape))
    layer = nn.Linear(6, 2)
    with pytest.warns(UserWarning, match="no inputs require gradients"):  # so says torch of any first module
        layer(mask(x)).sum().backward()
    assert seen == [pytest.approx(float((x * mask.gamma).detach().sum())), (4, 6)]
    gradient = mask.gamma.grad.clone()
    mask.gamma.grad = None
    layer(x * mask.gamma).sum().backward()
    torch.testing.assert_close(gradient, mask.gamma.grad)


def test_functional_transforms_work(mask, x):
    model = nn.Sequential(mask, nn.Linear(6, 2))
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def loss(parameters, x):
        return torch.func.functional_call(model, parameters, (x,)).square().sum()

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    model(x).square().sum().backward()
    torch.testing.assert_close(per_sample["0.gamma"].sum(0), mask.gamma.grad)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.complex64])
def test_other_number_types_are_multiplied_as_torch_does(mask, dtype):
    x = torch.tensor([[0, 1, 1, 0, 1, 1]]).to(dtype)
    expected = x * mask.gamma.to(dtype) if x.is_floating_point() or x.is_complex() else x * mask.gamma
    assert mask(x).dtype == expected.dtype
    assert torch.equal(mask(x).abs(), expected.abs())
    mask(x).abs().sum().backward()
    assert mask.gamma.grad.count_nonzero() == 4


def test_a_mask_of_one_entry_broadcasts(x):
    gamma = torch.ones(1, requires_grad=True)
    layer = nn.Linear(6, 2)
    torch.testing.assert_close(layer(FeatureMask(1, 1)(x)), layer(x))
    layer(masked(x, gamma)).sum().backward()
    torch.testing.assert_close(gamma.grad, (x * layer.weight.sum(0)).sum().reshape(1))


def test_an_input_with_a_gradient_of_its_own_gets_it(mask, x):
    x.requires_grad_()
    layer = nn.Linear(6, 2)
    layer(mask(x)).sum().backward()
    torch.testing.assert_close(x.grad, (mask.gamma * layer.weight.sum(0)).detach().expand(4, 6))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_linear_layers_work_on_the_living_alone(dtype):
    """From a quarter of the columns on: the same outputs, gradients, and selection as of the plain product."""
    torch.manual_seed(0)
    x = torch.randn(60, 24, dtype=dtype)
    y, widths, ends = x[:, :2].sum(1), [], []
    for plain in (True, False):
        torch.manual_seed(1)
        mask, layer = FeatureMask(24, 2, mask_learning_rate=0.05), nn.Linear(24, 3, dtype=dtype)
        optimizer = torch.optim.AdamW([*mask.parameters(), *layer.parameters()], lr=0.02)
        mask.attach(optimizer, ramp_steps=80)
        while not mask.closed:
            optimizer.zero_grad()
            alive, masked_x = mask._alive, x * mask.gamma if plain else mask(x)
            if not plain and alive is not None and masked_x._kept is not None:
                widths.append(alive.numel())
                assert (mask.gamma.detach()[alive] > 0).sum() == mask.n_alive or alive.numel() >= mask.n_alive
            functional.mse_loss(layer(masked_x).sum(1), y).backward()
            optimizer.step()
            assert mask.step < 500
        ends.append((mask.ranking(), layer(mask(x)).detach()))
    assert min(widths) < max(widths) <= 6
    assert torch.equal(ends[0][0], ends[1][0])
    torch.testing.assert_close(ends[0][1], ends[1][1], rtol=1e-3, atol=1e-4)
