"""The explorer in a browser: specs, clicks and keys give the results of the library."""

import re
from itertools import pairwise

import pytest
import torch

import bellnet as bn
from bellnet.errors import SpecError
from bellnet.spec import parse_spec
from docs.explorer.build_page import build_page
from tests.browser import needs_browser, open_browser

pytestmark = [pytest.mark.slow, needs_browser]

SPECS = ["n n -> n n", "u u i -> u i", "n n, n -> n n, n", "{n n} -> {n n}", "n n n n -> n n n", "nn -> nn", "n! -> n"]

USED = {
    "button",
    "radio",
    "textbox",
    "checkbox",
    "combobox",
    "group",
    "radiogroup",
    "image",
    "heading",
    "region",
    "table",
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def explorer(browser, tmp_path):
    """The page; console messages fail the test."""
    file = tmp_path / "explorer.html"
    file.write_text(build_page().replace("@@spec@@", "n n -&gt; n n"), encoding="utf-8")
    found = Explorer(browser, file.as_uri())
    found.be(1280, 900)
    found.open()
    yield found
    assert browser.get_log("browser") == []


class Explorer:
    """User actions on the page, and its contents."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def open(self, hash=""):
        self.driver.get("about:blank")
        self.driver.get(self.address + hash)

    def be(self, width, height, scheme="light"):
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        (found,) = self.all(selector)
        return found

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def type(self, spec):
        field = self.one("#spec")
        field.clear()
        field.send_keys(spec)

    def set(self, spec):
        """Sets the whole spec at once, as pasting does."""
        self.run(
            "const field = document.querySelector('#spec'); field.value = arguments[0];"
            "field.dispatchEvent(new Event('input'))",
            spec,
        )

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def choose(self, name):
        (label,) = [card for card in self.all(".card") if card.find_element("css selector", ".name").text == name]
        self.run("arguments[0].scrollIntoView({ block: 'center' })", label)
        label.click()

    def values(self, side):
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((cell) => Number(cell.dataset.value))",
            f"#{side} .cell",
        )

    def table(self):
        """The rows of the plan; names of contractions and broadcasts are lists."""
        return self.run(
            """return [...document.querySelectorAll("#table tbody tr")].map((row) =>
                 [...row.cells].map((cell) => [...cell.querySelectorAll("span"), cell])
                   .map((some) => some.map((one) => one.textContent)))"""
        )


def _mistake(text):
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    return str(caught.value)


def _output_of(spec, name, entries, shape):
    """The output of the basis map of this name."""
    the_plan = bn.plan(spec)
    (number,) = [number for number, one in enumerate(the_plan.diagrams) if one.name == name]
    layer = bn.EquivariantLinear(spec, 1, 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.zero_()[number] = 1
        result = layer(torch.tensor(entries, dtype=torch.float64).reshape(*shape, 1))
    return result.flatten().tolist()


def test_clicked_entries_give_the_output_of_the_layer(explorer):
    explorer.type("u i -> u u")
    the_plan = bn.plan("u i -> u u")
    facts = explorer.run("return [...document.querySelector('caption').children].map((one) => one.textContent)")
    assert "    ".join(facts) == str(the_plan).splitlines()[0]
    cards = [card.text for card in explorer.all("fieldset.map .card")]
    assert sorted(cards) == sorted(diagram.name for diagram in the_plan.diagrams)
    for diagram in the_plan.diagrams:
        explorer.choose(diagram.name)
        assert explorer.text("#description") == diagram.words()
        assert explorer.text("#steps") == diagram.describe()
        explorer.one("#presets [value=clear]").click()
        cells = explorer.all("#input .cell")
        for place in (0, 1, 5, 1):  # the second is turned on and off again
            cells[place].click()
        entries = explorer.values("input")
        assert [place for place, entry in enumerate(entries) if entry] == [0, 5]
        sizes = [int(field.get_attribute("value")) for field in explorer.all("#sizes select")]
        assert explorer.values("output") == pytest.approx(_output_of("u i -> u u", diagram.name, entries, sizes))


@pytest.mark.parametrize("spec", ["n n -> n n", "n n, n -> n n, n", "{u u} i -> {u u} i"])
def test_table_is_the_one_that_python_prints(explorer, spec):
    explorer.type(spec)
    _, _, *printed = str(bn.plan(spec)).splitlines()
    rows = [re.split(" {2,}", line.strip()) for line in printed if not line.startswith("  unordered")]
    shown = [[text for cell in row for text in (cell[:-1] if len(cell) > 1 else cell)] for row in explorer.table()]
    assert shown == rows
    saved = explorer.run("return [...document.querySelectorAll('tfoot td')].map((one) => one.textContent)")
    assert saved == [line.strip() for line in printed if line.startswith("  unordered")]
    assert str(bn.plan(spec)) in explorer.text("#text")


def test_invalid_spec_shows_the_message_of_the_library_without_a_layout_shift(explorer):
    before = explorer.run("return document.querySelector('#maps').getBoundingClientRect().top")
    for text in ("n n! -> n", "n n", "{n -> n"):
        explorer.type(text)
        assert explorer.text("#error") == _mistake(text)
        assert explorer.one("#spec").get_attribute("aria-invalid") == "true"
        assert explorer.run("return document.querySelector('#maps').getBoundingClientRect().top") == before
        assert explorer.run("return document.querySelector('#selected').inert")
    explorer.type("n n -> n n")
    assert not explorer.one("#error").is_displayed()
    assert explorer.one("#spec").get_attribute("aria-invalid") == "false"
    assert not explorer.run("return document.querySelector('#selected').inert")


def test_suspicious_spec_shows_the_warning_of_the_library(explorer):
    explorer.type("nn -> nn")
    assert explorer.one("#warning").text.startswith('The spec "nn -> nn" was read as 1 slot -> 1 slot')
    assert explorer.text("caption strong") == "2 maps, 1 bias"


def test_page_can_be_used_by_keyboard_alone(explorer):
    from selenium.webdriver.common.keys import Keys

    explorer.run("document.querySelector('#spec').select()")
    explorer.press("n n -> n n")
    for _ in range(60):
        explorer.press(Keys.TAB)
        if explorer.run("return document.activeElement.name") == "map":
            break
    assert explorer.run("return document.activeElement.getAttribute('aria-label')") == (
        "ab->aa, row means, on the diagonal"
    )
    explorer.press(Keys.ARROW_RIGHT)
    assert explorer.text("#selected-title .name") == "ab->ac"
    for _ in range(20):
        explorer.press(Keys.TAB)
        if explorer.run("return document.activeElement.closest('#input') !== null"):
            break
    before = explorer.values("input")
    explorer.press(Keys.SPACE, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, "7", "-")
    after = explorer.values("input")
    assert after == [1 - before[0], *before[1:6], -7, *before[7:]]
    assert explorer.values("output") == pytest.approx(_output_of("n n -> n n", "ab->ac", after, (5, 5)))
    explorer.press(Keys.TAB)
    assert explorer.run("return document.activeElement.getAttribute('aria-label')").startswith("y[0, 0] = ")
    assert explorer.text("#entry-info").endswith("; reads x[0, 0], x[0, 1], x[0, 2], x[0, 3] and x[0, 4]")
    assert len(explorer.all("#input .highlighted")) == 5


def test_equal_entries_change_together_and_hollow_entries_stay_zero(explorer):
    explorer.type("n n -> n")
    explorer.one("#symmetric").click()
    explorer.one("#hollow").click()
    assert explorer.text("caption strong") == f"{bn.plan('n n -> n', symmetric=True, hollow=True).n_maps} maps, 1 bias"
    explorer.one("#presets [value=clear]").click()
    cells = explorer.all("#input .cell")
    cells[1].click()
    assert [place for place, entry in enumerate(explorer.values("input")) if entry] == [1, 5]
    assert [place for place, cell in enumerate(cells) if not cell.is_enabled()] == [0, 6, 12, 18, 24]


def test_normalization_and_basis_can_be_changed(explorer):
    explorer.one("#presets [value=numbers]").click()
    diagonal = slice(None, None, 6)
    assert explorer.values("output")[diagonal] == pytest.approx([3, 8, 13, 18, 23])
    explorer.one("#normalize [value=sum]").click()
    assert explorer.text("#description") == "row sums, on the diagonal"
    assert explorer.values("output")[diagonal] == [15, 40, 65, 90, 115]
    explorer.one("#basis [value=orbit]").click()
    assert explorer.values("output")[diagonal] == [14, 33, 52, 71, 90]  # without the diagonal
    label = explorer.one("#matrix svg").get_attribute("aria-label")
    assert label == "matrix of 25 rows and 25 columns, 20 of its entries not zero"
    assert not explorer.one("#normalize [value=mean]").is_enabled()


def test_too_many_maps_are_counted_and_only_the_first_are_shown(explorer):
    explorer.set("n n n n n -> n n n n n")
    with pytest.raises(SpecError) as refusal:
        bn.plan("n n n n n -> n n n n n")
    assert explorer.one("#error").text == str(refusal.value)
    assert explorer.text("#gallery legend") == "the first 24 of 115,975 maps"
    assert len(explorer.all(".card")) == 24
    assert explorer.text("#description") == "the diagonal, on the diagonal"
    explorer.set("n n n n -> n n n")
    levels = [level.n_maps for level in reversed(bn.plan("n n n n -> n n n").levels)]
    assert [len(group.find_elements("css selector", ".card")) for group in explorer.all("fieldset.map")] == [24] * 4
    more = explorer.all(".more")[0]
    assert more.text == f"{levels[0] - 24} left out; show {min(levels[0] - 24, 48)} more"
    explorer.run("arguments[0].click()", more)
    assert len(explorer.all("fieldset.map")[0].find_elements("css selector", ".card")) == min(levels[0], 72)


def test_bias_is_constant_on_its_orbit(explorer):
    explorer.choose("->aa")
    assert explorer.text("#description") == "one value, on the diagonal"
    assert explorer.values("output") == torch.eye(5).flatten().tolist()
    assert not explorer.one("#input-side").is_displayed()


def test_address_of_the_page_restores_the_spec(explorer):
    explorer.type("{n n} -> n")
    hash = explorer.run("return location.hash")
    explorer.open(hash)
    assert explorer.one("#spec").get_attribute("value") == "{n n} -> n"
    explorer.open("#%E0%A4%A")  # which nobody can read
    assert explorer.one("#spec").get_attribute("value") == "n n -> n n"


def test_narrow_page_has_no_overflow(explorer):
    for spec in SPECS:
        explorer.set(spec)
        for width in (390, 768, 1280):
            explorer.be(width, 844)
            assert explorer.run("return document.documentElement.scrollWidth <= innerWidth"), (spec, width)


def test_theme_follows_the_system_unless_one_is_chosen(explorer):
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = explorer.run(ground)
    explorer.be(1280, 900, scheme="dark")
    dark = explorer.run(ground)
    assert light != dark
    explorer.one("#theme [value=light]").click()
    assert explorer.run(ground) == light
    explorer.be(1280, 900, scheme="light")
    explorer.one("#theme [value=dark]").click()
    assert explorer.run(ground) == dark
    explorer.open()
    assert explorer.run(ground) == dark  # it is remembered
    explorer.one("#theme [value=system]").click()
    assert explorer.run(ground) == light


def test_text_has_enough_contrast_in_both_themes(explorer):
    for place, key in enumerate("13579-"):
        explorer.all("#input .cell")[place].send_keys(key)
    for scheme in ("light", "dark"):
        explorer.be(1280, 900, scheme=scheme)
        for color, ground in explorer.run(
            """const onWhat = (one) => {
                 const own = getComputedStyle(one).backgroundColor;
                 return own === "rgba(0, 0, 0, 0)" && one.parentElement ? onWhat(one.parentElement) : own;
               };
               const paint = (color) => {
                 const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
                 const brush = canvas.getContext("2d");
                 brush.fillStyle = color;
                 brush.fillRect(0, 0, 1, 1);
                 return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3);
               };
               return [...document.querySelectorAll("p, h1, h2, h3, label, button, th, td, caption, legend, .soft")]
                 .filter((one) => one.checkVisibility() && one.textContent.trim() && !one.disabled)
                 .map((one) => [paint(getComputedStyle(one).color), paint(onWhat(one))])"""
        ):
            assert _contrast(color, ground) >= 4.5, (scheme, color, ground)


def _contrast(one, other):
    def light(color):
        parts = [part / 255 for part in color]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted([light(one), light(other)], reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_controls_have_names_and_headings_skip_no_level(explorer):
    for spec in ("n n, n -> n n, n", "u u i -> u i"):
        explorer.type(spec)
        nodes = explorer.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        found = [(node["role"]["value"], node.get("name", {}).get("value")) for node in nodes if not node["ignored"]]
        assert {role for role, _ in found} >= {"button", "radio", "textbox", "checkbox", "image", "heading", "main"}
        assert [role for role, name in found if role in USED and not name] == []
    levels = explorer.run("return [...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = explorer.run("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
