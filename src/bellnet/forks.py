"""Locks for what all threads of a process share, also where the process is forked.

A fork copies one thread alone. A lock that another thread had at that moment would never be unlocked in the copy.
"""

import os
from threading import Lock


def lock_of_threads() -> Lock:
    """A lock that nobody has in a process that was just forked: a fork waits until it is free."""
    made = Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=made.acquire, after_in_parent=made.release, after_in_child=made.release)
    return made
