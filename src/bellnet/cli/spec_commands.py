"""The commands about a spec: plan, basis and explore."""

import argparse
import os
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from bellnet import Plan, plan
from bellnet.cli.command import OK, Command, count, write_file
from bellnet.cli.output import printable, table
from bellnet.errors import BellnetError, OptionError
from bellnet.spec import parse_spec

DEFAULT_SPEC = "n n -> n n"

SCREENS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Variables one of which is set where a browser can be opened, on systems that may have no screen."""

COLUMNS = """\
columns of the table, a row for each rank:
  rank       number of nodes that a map carries from input to output, for each node set
  contract   contractions of the input: a letter for each axis, equal letters for
             one node; letters after the arrow are carried, the others summed over
  permute    number of orders in which the carried nodes can arrive
  broadcast  broadcasts to the output: letters before the arrow are carried
             (they are named anew), the values are repeated along the others
  maps       contractions times permutations times broadcasts
"""


def _declare_plan(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{COLUMNS}\n{parser.epilog}"
    _declare_spec(parser)
    parser.add_argument("--symmetric", action="store_true", help="inputs do not change when their slots are exchanged")
    parser.add_argument("--hollow", action="store_true", help="inputs are zero where two of their slots coincide")
    parser.add_argument("--max-maps", metavar="M", type=count, help="refuse a spec with more maps (default 50000)")
    parser.add_argument("--diagrams", action="store_true", help="list the diagrams, with what each does in words")
    parser.add_argument("--cost", metavar="N", type=_sizes, help="count the cost for N nodes, or for u=30,i=10")
    parser.add_argument(
        "--channels", metavar=("D", "D'"), nargs=2, type=count, help="channels in and out, for --cost (default 1 1)"
    )
    parser.add_argument("--batch", metavar="B", type=count, help="graphs in a batch, for --cost (default 1)")


def _run_plan(arguments: argparse.Namespace) -> int:
    if arguments.cost is None and (arguments.channels or arguments.batch):
        raise OptionError("--channels and --batch belong to --cost.\nAdd the number of nodes, for instance --cost 30.")
    bound = {} if arguments.max_maps is None else {"max_maps": arguments.max_maps}
    the_plan = plan(arguments.spec, symmetric=arguments.symmetric, hollow=arguments.hollow, **bound)
    parts = [str(the_plan)]
    if arguments.diagrams:
        parts.append(_diagram_table(the_plan))
    if arguments.cost is not None:
        parts.append(_cost_table(the_plan, arguments.cost, arguments.channels or (1, 1), arguments.batch or 1))
    print("\n\n".join(parts))
    return OK


def _diagram_table(the_plan: Plan) -> str:
    rows = [("map", "name", "in words", "step by step")]
    for number, diagram in enumerate(the_plan.diagrams):
        pair = "" if the_plan.spec.is_single else f"[{diagram.source}] to [{diagram.target}]  "
        rows.append((str(number), f"{pair}{diagram.name}", diagram.words(), diagram.describe()))
    return table(rows, "><<<")


def _cost_table(the_plan: Plan, sizes: int | dict[str, int], channels: Sequence[int], batch: int) -> str:
    cost = the_plan.cost(sizes, channels[0], channels[1], batch)
    saved = cost.stacked_multiplications / max(cost.multiplications, 1)
    rows = (
        ("multiplications", f"{cost.multiplications:,}", ""),
        ("with all maps stacked", f"{cost.stacked_multiplications:,}", f"{saved:.1f} times as many"),
        ("bytes of the input", f"{cost.input_bytes:,}", ""),
        ("bytes of the output", f"{cost.output_bytes:,}", ""),
        ("bytes in between", f"{cost.extra_bytes:,}", ""),
    )
    return table(rows, "<><")


def _declare_basis(parser: argparse.ArgumentParser) -> None:
    _declare_spec(parser)
    parser.add_argument("--n", metavar="N", type=_sizes, default=5, help="nodes, or u=4,i=3 (default 5)")
    parser.add_argument("--basis", choices=("orbit", "diagram"), default="orbit", help="default orbit, as in the paper")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="the matrices: a .png, .pdf or .svg")
    parser.add_argument("--diagrams", metavar="FILE", type=Path, help="the diagrams (default: FILE-diagrams)")


def _run_basis(arguments: argparse.Namespace) -> int:
    from bellnet.draw import check_path, draw_basis, draw_diagrams, pairs_of, save_figures

    out: Path = check_path(arguments.out)
    diagrams: Path = check_path(arguments.diagrams or out.with_name(f"{out.stem}-diagrams{out.suffix}"))
    if out.resolve() == diagrams.resolve():
        raise OptionError(f"--out and --diagrams are one file, {str(out)!r}.\nGive each picture its own.")
    figures = {}
    for end, spec, n in pairs_of(arguments.spec, arguments.n):
        figures[out.with_stem(out.stem + end)] = draw_basis(spec, n, basis=arguments.basis)
        figures[diagrams.with_stem(diagrams.stem + end)] = draw_diagrams(spec)
    save_figures(figures)
    print("\n".join(f"wrote {printable(path)}" for path in figures))
    return OK


def _declare_spec(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", help='the shape of source and target, for instance "n n -> n n"')


def _sizes(text: str) -> int | dict[str, int]:
    if "=" not in text:
        return count(text)
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = part.partition("=")
        if not equals or not name.strip():
            raise argparse.ArgumentTypeError(f"{part!r} is not a node set and its size, for instance u=30")
        sizes[name.strip()] = count(size.strip())
    return sizes


def _declare_explore(parser: argparse.ArgumentParser) -> None:
    default = f'initial spec (default "{DEFAULT_SPEC}")'
    parser.add_argument("spec", metavar="SPEC", nargs="?", default=DEFAULT_SPEC, help=default)
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the page to a file and open nothing")


def _run_explore(arguments: argparse.Namespace) -> int:
    content = _page(arguments.spec).encode()
    if arguments.out is not None:
        write_file(arguments.out, content)
        print(f"wrote {printable(arguments.out)}")
        return OK
    path = Path(tempfile.mkdtemp(prefix="bellnet-")) / "explorer.html"
    path.write_bytes(content)
    print(f"{'opened' if _opened(path) else 'there is no browser here that can open'} {printable(path)}")
    return OK


def _page(spec: str) -> str:
    """The page that was built when bellnet was installed, with a spec in its input field."""
    text = escape(str(parse_spec(spec)), quote=True)
    page = files("bellnet") / "explorer.html"
    try:
        return page.read_text(encoding="utf-8").replace("@@spec@@", text)
    except FileNotFoundError as reason:
        raise BellnetError(
            f"The page {page} does not exist. It is built when bellnet is installed; install bellnet again, "
            "in a clone with: pip install -e ."
        ) from reason


def _opened(path: Path) -> bool:
    has_screen = sys.platform in ("win32", "darwin") or any(map(os.environ.get, SCREENS))
    # Without a screen there may be browsers for terminals, which cannot show this page.
    return has_screen and webbrowser.open(path.as_uri())


COMMANDS = (
    Command(
        "plan",
        "print how the maps of a spec are computed",
        (
            'plan "n n -> n n"',
            'plan "n n n -> n" --diagrams',
            'plan "n n -> n n" --symmetric --hollow',
            'plan "{n n}, n -> {n n}, n"',
            'plan "u i -> u i" --cost u=100,i=40 --channels 16 32 --batch 8',
        ),
        _declare_plan,
        _run_plan,
        uses_torch=False,
    ),
    Command(
        "basis",
        "draw the maps of a spec as matrices and as diagrams",
        (
            'basis "n n -> n n" --n 5 --out figure1.png',
            'basis "u i -> u i" --n u=4,i=3 --basis diagram --out maps.pdf',
        ),
        _declare_basis,
        _run_basis,
    ),
    Command(
        "explore",
        "open an interactive page with the basis maps of a spec",
        ("explore", 'explore "u u i -> u i"', 'explore "n n -> n n" --out explorer.html'),
        _declare_explore,
        _run_explore,
        uses_torch=False,
    ),
)
