"""What torch.jit.script is told of modules that it cannot read: their forward takes several kinds of tensors."""

from typing import NoReturn

from bellnet.errors import TensorError


class NotScripted:
    """A module that cannot be scripted, alone or as a part of another one."""

    def __prepare_scriptable__(self) -> NoReturn:
        # Torch asks every module for this, from the outermost inwards, before it reads any source.
        raise TensorError(
            f"{type(self).__name__} cannot be compiled by torch.jit.script, which reads source code and knows tensors "
            "alone.\nUse torch.export.export(module, (x,), dynamic_shapes=...), or torch.compile(module)."
        )
