"""bfloat16, by hand and by autocast.

In a process of its own: some CPUs announce instructions for bfloat16 products that their host traps, and the variable
that keeps oneDNN from using them must be set before torch starts.
"""

import os
import subprocess
import sys

SCRIPT = """
import torch
import bellnet as bn

torch.manual_seed(0)
layer = bn.EquivariantLinear("n n -> n n", 8, 16)
x = torch.randn(4, 9, 9, 8)
exact = layer(x)

with torch.autocast("cpu", dtype=torch.bfloat16):
    casted = layer(x)
    graphs = layer(bn.Padded(x, torch.tensor([9, 4, 1, 0]))).values
assert casted.dtype == torch.bfloat16 and graphs.dtype == torch.bfloat16
torch.testing.assert_close(casted.float(), exact, rtol=5e-2, atol=5e-2)
casted.float().pow(2).sum().backward()
assert layer.weight.grad.dtype == torch.float32

same = bn.EquivariantLinear("n n -> n n", 8, 16, dtype=torch.bfloat16)
same.load_state_dict(layer.state_dict())
torch.testing.assert_close(same(x.bfloat16()), casted, rtol=5e-2, atol=5e-2)
same(x.bfloat16()).sum().backward()
assert same.weight.grad.dtype == torch.bfloat16
print("fine")
"""


def test_bfloat16_and_autocast_agree_with_float32_to_their_precision() -> None:
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "fine\n"
