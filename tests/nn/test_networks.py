"""The networks: equivariance, padding invariance and options, in training and in evaluation."""

import copy

import pytest
import torch
from torch import nn

import bellnet as bn
from bellnet.errors import OptionError
from bellnet.testing import assert_equivariant, assert_invariant, assert_padding_invariant

OPTIONS = [
    {},
    {"norm": "batch"},
    {"norm": "graph"},
    {"norm": "channels"},
    {"dropout": 0.5},
    {"residual": True},
    {"activation": "sigmoid"},
    {"activation": nn.PReLU},
    {"normalize": "sum", "basis": "orbit", "norm": "graph"},
    {"norm": "graph", "dropout": 0.2, "residual": True, "activation": "gelu"},
]


def shaken(net: nn.Module) -> nn.Module:
    """The net with random biases and running statistics, so that nothing is hidden by zeros and ones."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if name.endswith(("bias", "running_mean")):
                tensor.normal_(std=0.3)
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2)
    return net.double()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n", "n n n -> n", "u i -> i", "n n ->"])
def test_equivariant_net_commutes_with_node_permutations_for_all_options(spec, options, training):
    net = shaken(bn.EquivariantNet(spec, [2, 3, 3, 2], **options)).train(training)
    assert_equivariant(net, spec)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_invariant_net_is_permutation_invariant_for_all_options(options, reduce, training):
    net = shaken(bn.InvariantNet("n n", [2, 3, 3], 2, hidden=[4], reduce=reduce, **options)).train(training)
    assert_invariant(net, "n n")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n", "u i -> i"])
def test_padding_changes_nothing_in_an_equivariant_net(spec, options):
    net = shaken(bn.EquivariantNet(spec, [2, 3, 3, 2], **options)).eval()
    assert_padding_invariant(net, spec, nan=True)
    assert_padding_invariant(net, spec, empty=True)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_padding_changes_nothing_in_an_invariant_net(options):
    net = shaken(bn.InvariantNet("n n", [2, 3, 3], 2, hidden=[4], **options)).eval()
    assert_padding_invariant(net, "n n ->", nan=True)
    assert_padding_invariant(net, "n n ->", empty=True)


def test_the_default_is_the_network_of_the_paper():
    net = bn.InvariantNet("n n", [8, 16, 32, 256], 2, hidden=[512, 256])
    layers = [block.layer for block in net.blocks]
    assert [(layer.plan.n_maps, layer.in_channels, layer.out_channels) for layer in layers] == [
        (15, 8, 16),
        (15, 16, 32),
        (15, 32, 256),
    ]
    assert [module.weight.shape for module in net.head if isinstance(module, nn.Linear)] == [
        (512, 512),
        (256, 512),
        (2, 256),
    ]
    assert not any(isinstance(module, bn.EntryNorm | nn.Dropout) for module in net.modules())


def test_activations_are_between_layers_and_not_after_the_last():
    net = bn.EquivariantNet("n -> n", [1, 1, 1])
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        net.blocks[0].layer.weight[0] = 1  # copy
        net.last.weight[0] = -1
    x = torch.tensor([[-2.0], [3.0]])
    assert net(x).flatten().tolist() == [0, -3]


def test_a_declared_symmetry_concerns_the_first_layer_only():
    net = bn.EquivariantNet("n n -> n n", [1, 4, 1], symmetric=True, hollow=True)
    assert (net.blocks[0].layer.plan.n_maps, net.last.plan.n_maps) == (6, 15)
    assert bn.EquivariantNet("n n -> n n", [1, 1], symmetric=True).last.plan.n_maps == 11
    assert bn.InvariantNet("n n", [1, 4, 4], 1, symmetric=True).blocks[1].layer.plan.n_maps == 15


def test_residual_blocks_add_their_input_where_channels_agree():
    net = bn.EquivariantNet("n -> n", [2, 2, 3, 1], residual=True)
    assert [block.residual for block in net.blocks] == [True, False]
    with torch.no_grad():
        net.blocks[0].layer.weight.zero_()
    x = torch.randn(4, 2)
    assert torch.equal(net.blocks[0](x), x)


def test_the_net_of_hartford_et_al_is_one_changed_string():
    ours, theirs = bn.EquivariantNet("n n -> n n", [1, 8, 1]), bn.EquivariantNet("u i -> u i", [1, 8, 1])
    assert (ours.last.plan.n_maps, theirs.last.plan.n_maps) == (15, 4)
    assert theirs(torch.randn(2, 5, 5, 1)).shape == (2, 5, 5, 1)


def test_call_takes_the_number_of_nodes_that_only_the_target_has():
    net = bn.EquivariantNet("u -> u i", [2, 3, 1])
    assert net(torch.randn(4, 2), sizes={"i": 6}).shape == (4, 6, 1)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batch_normalization_of_tensors_and_unpadded_padded_agree(training, dtype):
    """Torch's own operation does the first, ours the second."""
    norms = [bn.EntryNorm(3, "n n").to(dtype).train(training) for _ in range(2)]
    x = torch.randn(4, 5, 5, 3, dtype=dtype) * 2 + 1
    for norm in norms:
        norm.running_mean.fill_(0.5)
        torch.nn.init.uniform_(norm.weight, generator=torch.Generator().manual_seed(0))
    found, expected = norms[0](x), norms[1](bn.Padded(x, torch.full((4,), 5))).values
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(norms[0].state_dict(), norms[1].state_dict())


def test_batch_statistics_do_not_count_padding():
    torch.manual_seed(0)
    graphs = [torch.randn(n, n, 3) * 4 + 2 for n in (5, 2, 1)]
    norm = bn.EntryNorm(3, "n n")
    padded = norm(bn.Padded.pack(graphs))
    entries = torch.cat([graph.reshape(-1, 3) for graph in graphs])
    reference = nn.BatchNorm1d(3)
    expected = reference(entries)
    found = torch.cat([graph.reshape(-1, 3) for graph in padded.unpack("n n")])
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(norm.running_mean, reference.running_mean)
    torch.testing.assert_close(norm.running_var, reference.running_var)
    assert not padded.values[1, 2:].any()


def test_channel_and_graph_statistics_are_those_of_torch():
    x = torch.randn(4, 5, 5, 3)
    layer_norm = nn.functional.layer_norm(x, [3])
    torch.testing.assert_close(bn.EntryNorm(3, "n n", over="channels")(x), layer_norm)
    instance_norm = nn.functional.instance_norm(x.movedim(-1, 1)).movedim(1, -1)
    torch.testing.assert_close(bn.EntryNorm(3, "n n", over="graph")(x), instance_norm)


def test_dropped_channels_are_dropped_for_a_whole_graph_and_others_scaled():
    torch.manual_seed(0)
    block = bn.EquivariantNet("n -> n", [1, 64, 1], dropout=0.5, activation="identity").blocks[0]
    x = torch.randn(2, 5, 1)
    outputs, dropped = block.eval()(x), block.train()(x)
    ratios = (dropped / outputs).round(decimals=4)
    assert set(ratios.flatten().tolist()) == {0.0, 2.0}
    assert all(len(set(ratios[graph, :, channel].tolist())) == 1 for graph in range(2) for channel in range(64))


def test_hidden_units_are_dropped_separately_and_dropout_has_no_weights():
    plain, net = (bn.InvariantNet("n n", [1, 2], 2, hidden=[64], dropout=p) for p in (0.0, 0.5))
    assert [*plain.head[0].state_dict()] == [*net.head[0].state_dict()]
    assert len(net.head[2].state_dict()) == 0
    outputs = net.head[2].train()(torch.ones(4, 64))
    assert set(outputs.flatten().tolist()) == {0.0, 2.0}
    assert len({tuple(row) for row in outputs.tolist()}) == 4


def test_dropout_draws_from_its_generator():
    x, dropout = torch.ones(3, 5, 5, 8), bn.ChannelDropout(0.5, "n n")
    state, dropped = torch.get_rng_state(), []
    for seed in (1, 1, 2):
        dropout.generator = torch.Generator().manual_seed(seed)
        dropped.append(copy.deepcopy(dropout)(x))
    assert torch.equal(dropped[0], dropped[1])
    assert not torch.equal(dropped[0], dropped[2])
    assert torch.equal(torch.get_rng_state(), state)


def test_each_layer_gets_an_activation_of_its_own():
    net = bn.EquivariantNet("n -> n", [1, 2, 2, 1], activation=nn.PReLU)
    assert net.blocks[0].activation.module is not net.blocks[1].activation.module


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bn.EquivariantNet("n -> n", [1]), "channels must have at least 2 entries, not 1."),
        (lambda: bn.EquivariantNet("n -> n", [1, 0, 1]), "channels[1] must be an integer from 1 up, not 0."),
        (lambda: bn.EquivariantNet("n -> n", [1, 1], norm="group"), "norm must be one of 'batch', 'graph', 'channels'"),
        (lambda: bn.EquivariantNet("n -> n", [1, 1], dropout=1.5), "dropout must be a probability below 1, not 1.5."),
        (
            lambda: bn.EquivariantNet("n -> n", [1, 1, 1], activation="rely"),
            "activation must be a name or a callable that makes a module, not 'rely'.",
        ),
        (lambda: bn.EquivariantNet("n -> n", [1, 1, 1], activation=nn.ReLU()), "one module for all would not."),
        (lambda: bn.InvariantNet("n n", [1, 1], 1, hidden=[0]), "hidden[0] must be an integer from 1 up, not 0."),
        (lambda: bn.InvariantNet("n n", [1, 1], 1, reduce="min"), "reduce must be one of 'max', 'sum', 'mean'"),
        (lambda: bn.EntryNorm(3, "n", over="all"), "over must be one of 'batch', 'graph', 'channels', not 'all'."),
    ],
)
def test_errors_name_wrong_options(make, message):
    with pytest.raises(OptionError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["equivariant", "invariant"])
def test_a_net_learns_copies_and_loads(kind):
    torch.manual_seed(0)
    if kind == "equivariant":
        net = bn.EquivariantNet("n n -> n n", [1, 4, 1], norm="batch")
    else:
        net = bn.InvariantNet("n n", [1, 4], 1, norm="batch", hidden=[8])
    x = torch.rand(64, 6, 6, 1)
    target = x.transpose(1, 2) if kind == "equivariant" else x.diagonal(0, 1, 2).sum(-1)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(net(x), target)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 4
    again = copy.deepcopy(net)
    again.load_state_dict(net.state_dict())
    assert torch.equal(again.eval()(x), net.eval()(x))


def _hooked(module, hook):
    getattr(module, f"register_{hook}_hook")(lambda *_: None)
    return module


def _as_tensors(shape, kind):
    """Graphs of different sizes, one of a single node, as a network takes them, and the tensor to differentiate by."""
    torch.manual_seed(1)
    x = torch.randn(3, *[5] * len(shape.split()), 2, dtype=torch.float64)
    x[0].round_()  # so that some of the largest are equal
    if kind == "tensor":
        return x.requires_grad_(), x
    padded = bn.Padded(x.requires_grad_(), torch.tensor([5, 3, 1]))
    if kind == "padded":
        return padded, x
    index = torch.randint(3, (3, 12)).unique(dim=1)
    values = torch.randn(index.shape[1], 2, dtype=torch.float64).round().requires_grad_()
    return bn.Sparse(index, values, torch.tensor([3, 3, 4])), values


@pytest.mark.parametrize("over", ["all", "stored"])
@pytest.mark.parametrize("norm", [None, "batch"])
@pytest.mark.parametrize(
    ("shape", "kind"), [("n n", "tensor"), ("n n", "padded"), ("n n", "sparse"), ("n n n", "tensor")]
)
def test_relu_after_pooling_equals_relu_before(shape, kind, norm, over):
    net = shaken(bn.InvariantNet(shape, [2, 4, 6], 3, hidden=[5], norm=norm, pool_over=over))
    for parameter in net.blocks.parameters():
        parameter.data.mul_(4).round_().div_(4)
    x, by = _as_tensors(shape, kind)
    wanted = net.head(net.pool(bn.Pointwise(nn.ReLU())(net.blocks(x))))
    found = net(x)
    assert torch.equal(found, wanted)
    pulled = torch.randn_like(found)
    for one, other in zip(
        *(torch.autograd.grad(result, (by, *net.parameters()), pulled) for result in (found, wanted)), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "options",
    [
        {"reduce": "mean"},
        {"reduce": ("max", "sum")},
        {"jumping_knowledge": True},
        {"dropout": 0.1},
        {"activation": "tanh"},
        pytest.param({"activation": lambda: nn.ReLU(inplace=True)}, id="in place"),
        pytest.param({"activation": lambda: _hooked(nn.ReLU(), "forward")}, id="hooked"),
        pytest.param({"activation": lambda: _hooked(nn.ReLU(), "full_backward")}, id="hooked backwards"),
        {"residual": True},
    ],
    ids=str,
)
def test_elsewhere_the_last_block_has_its_activation(options):
    net = bn.InvariantNet("n n", [2, 4, 4], 3, **options)
    assert isinstance(net.activation, nn.Identity)
    assert isinstance(net.blocks[-1].activation, bn.Pointwise)
    net(torch.randn(3, 5, 5, 2)).sum().backward()


def test_jumping_knowledge_passes_all_layers_to_the_head():
    net = bn.InvariantNet("n n", [2, 3, 4], 5, reduce=("mean", "max"), jumping_knowledge=True)
    x = torch.randn(6, 5, 5, 2)
    first = net.blocks[0](x)
    pooled = torch.cat([net.pool(first), net.pool(net.blocks[1](first))], -1)
    assert pooled.shape == (6, 2 * 2 * (3 + 4))
    torch.testing.assert_close(net(x), net.head(pooled))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batch_normalization_of_all_stored_entries_is_that_of_the_dense_tensor(training, dtype):
    x = torch.randn(3, 4, 4, 5, dtype=dtype) * 3 + 1
    dense, sparse_norm = (bn.EntryNorm(5, "n n").to(dtype).train() for _ in range(2))
    for norm in (dense, sparse_norm):
        torch.nn.init.constant_(norm.bias, 0.3)
    sparse = bn.Sparse.from_dense(x, "n n", keep_zeros=True)
    for _ in range(2):
        expected, found = dense(x), sparse_norm(sparse)
    dense.train(training)
    sparse_norm.train(training)
    expected, found = dense(x), sparse_norm(sparse)
    torch.testing.assert_close(found.to_dense(), expected)
    torch.testing.assert_close(sparse_norm.state_dict(), dense.state_dict())


def test_reset_parameters_drops_running_statistics():
    norm = bn.EntryNorm(3, "n")
    fresh = {name: value.clone() for name, value in norm.state_dict().items()}
    norm(torch.randn(4, 5, 3) * 7)
    torch.nn.init.normal_(norm.weight)
    norm.reset_parameters()
    torch.testing.assert_close(dict(norm.state_dict()), fresh)
