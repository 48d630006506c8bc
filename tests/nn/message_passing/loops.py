"""Message passing by loops over nodes and neighbours, with nothing of the library in it."""

import torch


def one_round(message, update, h, a, e=None, *, to_source=False):
    """h_u' = U(h_u, sum over v of a_uv M(h_u, h_v, e_uv)), node by node; against the edges with a_vu and e_vu."""
    updated = []
    for u in range(len(h)):
        total = None
        for v in range(len(h)):
            u_v = (v, u) if to_source else (u, v)
            given = [h[u], h[v]] if e is None else [h[u], h[v], e[u_v]]
            heard = a[u_v] * message(torch.cat(given))
            total = heard if total is None else total + heard
        updated.append(update(torch.cat([h[u], total])))
    return torch.stack(updated)
