"""How the pictures look: one palette, three sizes of type, thin lines. Lengths are in inches, type is in points."""

INK = "#222222"
SOFT = "#6b6b6b"
RULE = "#c9c9c9"
FAINT = "#e2e2e2"
PAPER = "#ffffff"

MAP = "#0072b2"
BIAS = "#d55e00"
# The colours of Okabe and Ito, told apart with every kind of colour vision; their yellow is too pale for lines.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

HEADING = 12.0
TEXT = 9.0
SMALL = 7.5
SERIF_FREE = "DejaVu Sans"
MONOSPACE = "DejaVu Sans Mono"

MARGIN = 0.3
GAP = 0.26
TITLE = 0.2
THIN = 0.4
HAIR = 0.3


def width_of_name(name: str, size: float = SMALL) -> float:
    """The width of a name in the monospace type, whose letters are 0.602 of its size wide."""
    return len(name) * 0.602 * size / 72
