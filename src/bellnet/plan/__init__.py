"""How a map will be computed: contractions, diagrams, levels and costs, in integers and tuples, without tensors."""

from bellnet.plan.basis import Entries, diagram_to_orbit, orbit_to_diagram
from bellnet.plan.contraction import Contraction, Step
from bellnet.plan.cost import Cost
from bellnet.plan.count import MOST_MAPS, count_maps, refuse_giants, short_count, short_spec
from bellnet.plan.diagram import Diagram, Permutation
from bellnet.plan.level import Level
from bellnet.plan.plan import Absent, Pair, Plan, plan
from bellnet.plan.present import Present, present
from bellnet.plan.product_plan import ProductPlan, plan_product, split_letters
from bellnet.plan.tree import Branch, ContractionStack, Root, Tree

__all__ = [
    "MOST_MAPS",
    "Absent",
    "Branch",
    "Contraction",
    "ContractionStack",
    "Cost",
    "Diagram",
    "Entries",
    "Level",
    "Pair",
    "Permutation",
    "Plan",
    "Present",
    "ProductPlan",
    "Root",
    "Step",
    "Tree",
    "count_maps",
    "diagram_to_orbit",
    "orbit_to_diagram",
    "plan",
    "plan_product",
    "present",
    "refuse_giants",
    "short_count",
    "short_spec",
    "split_letters",
]
