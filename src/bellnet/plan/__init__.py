"""The plan of a map: contractions, diagrams, levels and costs, in integers and tuples, without tensors."""

from bellnet.plan.basis import Entries, diagram_to_orbit, orbit_to_diagram
from bellnet.plan.contraction import Contraction, ContractionStack, ContractionTree, Permutation, StackStep, inverse
from bellnet.plan.cost import Cost
from bellnet.plan.diagram import MOST_MAPS, Diagram, count_maps, refuse_giants, short_count, short_spec
from bellnet.plan.plan import Level, Plan, RestrictedPlan, plan, restrict
from bellnet.plan.product_plan import ProductPlan, plan_product, split_letters

__all__ = [
    "MOST_MAPS",
    "Contraction",
    "ContractionStack",
    "ContractionTree",
    "Cost",
    "Diagram",
    "Entries",
    "Level",
    "Permutation",
    "Plan",
    "ProductPlan",
    "RestrictedPlan",
    "StackStep",
    "count_maps",
    "diagram_to_orbit",
    "inverse",
    "orbit_to_diagram",
    "plan",
    "plan_product",
    "refuse_giants",
    "restrict",
    "short_count",
    "short_spec",
    "split_letters",
]
