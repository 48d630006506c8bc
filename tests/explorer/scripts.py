"""The scripts of the page that know no document, called from Python; and what the library says in their place."""

import json
import warnings
from functools import cache
from unittest.mock import patch

from py_mini_racer import MiniRacer

from bellnet import plan
from bellnet.errors import SpecError
from bellnet.explorer import library
from bellnet.plan.fold import letters
from bellnet.spec import doubts, parse_spec

FUNCTIONS = (
    *("SpecMistake", "parseSpec", "textOfSpec", "doubtAbout", "countMaps", "giantWords"),
    *("makePlan", "diagramsOf", "textOfPlan", "stepsOf", "wordsOf", "wordsOfBias"),
    *("matrixOf", "applyMatrix", "knownOfSource", "filledInput"),
)

ASKED = """
function asked(text, declared) {
  let spec;
  try {
    spec = scripts.parseSpec(text);
  } catch (error) {
    if (!(error instanceof scripts.SpecMistake)) throw error;
    return { mistake: error.message };
  }
  const found = { text: scripts.textOfSpec(spec), doubt: scripts.doubtAbout(spec) };
  found.giant = scripts.giantWords(spec, scripts.countMaps(spec, declared));
  if (found.giant !== null) return found;
  const plan = scripts.makePlan(spec, declared);
  found.plan = scripts.textOfPlan(plan);
  found.maps = plan.diagrams.map((one) => [
    one.number, one.name, one.source, one.target,
    scripts.stepsOf(one), scripts.wordsOf(one), scripts.wordsOf(one, { means: false }),
  ]);
  found.biases = plan.biases.map((one) => [one.target, one.name]);
  return found;
}
"""


@cache
def _engine():
    engine = MiniRacer()
    engine.eval(f"const scripts = {library(*FUNCTIONS)};\n{ASKED}")
    return engine


def call(expression, *arguments):
    """The value of a function of JavaScript, written as an expression, for these arguments."""
    return json.loads(_engine().eval(f"JSON.stringify(({expression})(...{json.dumps(arguments)}))"))


def scripts_say(text, *, symmetric=False, hollow=False):
    """What the page makes of a text."""
    return call("asked", text, {"symmetric": symmetric, "hollow": hollow})


def library_says(text, *, symmetric=False, hollow=False):
    """What the library makes of it, in the same form."""
    with patch.object(doubts, "_said", set()), warnings.catch_warnings(record=True) as caught:  # they are said once
        warnings.simplefilter("always")
        try:
            spec = parse_spec(text)
        except SpecError as mistake:
            return {"mistake": str(mistake)}
    found = {"text": str(spec), "doubt": str(caught[0].message) if caught else None}
    try:
        the_plan = plan(spec, symmetric=symmetric, hollow=hollow)
    except SpecError as refusal:
        return {**found, "giant": str(refusal)}
    maps = [
        [number, one.name, one.source, one.target, one.describe(), one.words(), one.words(means=False)]
        for number, one in enumerate(the_plan.diagrams)
    ]
    biases = [[target, f"->{letters(pattern)}"] for target, pattern in the_plan.numbered_biases]
    return {**found, "giant": None, "plan": str(the_plan), "maps": maps, "biases": biases}
