"""Pairs of graphs that are hard to tell apart, made without any download; `bellnet.data.refinement` says how hard."""

from bellnet.data.families.cfi import cfi, cfi_pairs
from bellnet.data.families.drawn import cover_pairs, regular_pairs
from bellnet.data.families.pair import Pair
from bellnet.data.families.strongly_regular import strongly_regular

__all__ = ["Pair", "cfi", "cfi_pairs", "cover_pairs", "regular_pairs", "strongly_regular"]
