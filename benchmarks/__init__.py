"""How fast the layers are, and how much memory they take, against other ways to compute the same maps."""
