"""Helpers that know nothing of tensors, graphs or specs."""
