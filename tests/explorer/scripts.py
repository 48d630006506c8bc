"""The DOM-free scripts of the page, called from Python, and the corresponding results of the library."""

import json
import warnings
from functools import cache
from unittest.mock import patch

from py_mini_racer import MiniRacer

from bellnet import plan
from bellnet.errors import SpecError
from bellnet.plan.contraction import letters
from bellnet.spec import parse_spec, parser
from docs.explorer.build_page import library_script

FUNCTIONS = (
    *("SpecError", "parseSpec", "formatSpec", "lintSpec", "countMaps", "sizeLimitError"),
    *("makePlan", "makeDiagrams", "formatPlan", "describeSteps", "describeMap", "describeBias"),
    *("basisMatrix", "applyMatrix", "inputConstraints", "fillValues"),
)

EVALUATE = """
function evaluateText(text, declared) {
  let spec;
  try {
    spec = scripts.parseSpec(text);
  } catch (error) {
    if (!(error instanceof scripts.SpecError)) throw error;
    return { error: error.message };
  }
  const found = { text: scripts.formatSpec(spec), warning: scripts.lintSpec(spec) };
  found.limit = scripts.sizeLimitError(spec, scripts.countMaps(spec, declared));
  if (found.limit !== null) return found;
  const plan = scripts.makePlan(spec, declared);
  found.plan = scripts.formatPlan(plan);
  found.maps = plan.diagrams.map((one) => [
    one.number, one.name, one.source, one.target,
    scripts.describeSteps(one), scripts.describeMap(one), scripts.describeMap(one, { means: false }),
  ]);
  found.biases = plan.biases.map((one) => [one.target, one.name]);
  return found;
}
"""


@cache
def _engine():
    engine = MiniRacer()
    engine.eval(f"const scripts = {library_script(*FUNCTIONS)};\n{EVALUATE}")
    return engine


def call(expression, *arguments):
    """The value of a function of JavaScript, written as an expression, for these arguments."""
    return json.loads(_engine().eval(f"JSON.stringify(({expression})(...{json.dumps(arguments)}))"))


def scripts_result(text, *, symmetric=False, hollow=False):
    """The result of the scripts for a text."""
    return call("evaluateText", text, {"symmetric": symmetric, "hollow": hollow})


def library_result(text, *, symmetric=False, hollow=False):
    """The result of the library, in the same form."""
    with patch.object(parser, "_warned", set()), warnings.catch_warnings(record=True) as caught:  # each is shown once
        warnings.simplefilter("always")
        try:
            spec = parse_spec(text)
        except SpecError as error:
            return {"error": str(error)}
    found = {"text": str(spec), "warning": str(caught[0].message) if caught else None}
    try:
        the_plan = plan(spec, symmetric=symmetric, hollow=hollow)
    except SpecError as refusal:
        return {**found, "limit": str(refusal)}
    maps = [
        [number, one.name, one.source, one.target, one.describe(), one.words(), one.words(means=False)]
        for number, one in enumerate(the_plan.diagrams)
    ]
    biases = [[target, f"->{letters(pattern)}"] for target, pattern in the_plan.numbered_biases]
    return {**found, "limit": None, "plan": str(the_plan), "maps": maps, "biases": biases}
