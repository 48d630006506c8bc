"""Lightning takes batches of `Padded` and `Sparse`, moves them to a device and trains on them."""

import pytest
import torch

from bellnet import InvariantNet, Padded, Sparse


@pytest.fixture(scope="module")
def lightning():
    return pytest.importorskip("lightning")


def _batches(kind):
    for _ in range(2):
        padded = Padded(torch.randn(3, 4, 4, 2), torch.tensor([4, 2, 3]))
        yield (padded if kind == "padded" else Sparse.from_dense(padded)), torch.randn(3, 1)


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # of Lightning, whatever it is given
@pytest.mark.parametrize("kind", ["padded", "sparse"])
def test_a_module_is_trained_on_batches(lightning, kind, tmp_path):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = InvariantNet("n n", [2, 4], 1)

        def training_step(self, batch, number):
            x, y = batch
            return (self.net(x) - y).square().mean()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    module = Module()
    before = [parameter.clone() for parameter in module.parameters()]
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(module, torch.utils.data.DataLoader(list(_batches(kind)), batch_size=None))
    assert any(not torch.equal(old, new) for old, new in zip(before, module.parameters(), strict=True))
