"""A dispatch mode that records matrix products and new tensors."""

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

PRODUCTS = {"mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_"}


class Recording(TorchDispatchMode):
    """Records every matrix product and every new tensor.

    Attributes:
        products: The shapes of the left and the right matrix of every product.
        allocated: The number of numbers in every tensor that is not a view of another.
        most_bytes: The most bytes that such tensors held at one time.
    """

    def __init__(self):
        super().__init__()
        self.products = []
        self.allocated = []
        self.most_bytes = 0
        self._alive = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        name = function.overloadpacket.__name__
        if name in PRODUCTS:
            left, right = [leaf for leaf in args if isinstance(leaf, Tensor)][-2:]
            self.products.append((tuple(left.shape), tuple(right.shape)))
        storages = {leaf.untyped_storage()._cdata for leaf in given}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.untyped_storage()._cdata not in storages:
                storage = leaf.untyped_storage()
                storages.add(storage._cdata)
                self.allocated.append(storage.nbytes() // leaf.element_size())
                self._alive[StorageWeakRef(storage)] = storage.nbytes()
        self._alive = {storage: size for storage, size in self._alive.items() if not storage.expired()}
        self.most_bytes = max(self.most_bytes, sum(self._alive.values()))
        return result
