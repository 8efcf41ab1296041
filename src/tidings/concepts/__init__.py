"""What words mean: concept trees, attribute trees, synonyms, units, derived attributes, named regions.

`Ontology` holds them together and answers; `Tree` is one hierarchy, `Regions` are areas by name. Pint,
shapely, Lark and rdflib are loaded by the first thing that needs them, never by importing this package.
"""

from tidings.concepts.declaration import Declared
from tidings.concepts.derived import Derived
from tidings.concepts.ontology import Ontology
from tidings.concepts.regions import Regions
from tidings.concepts.spelling import did_you_mean, fold, nearest
from tidings.concepts.surroundings import check_surroundings, declared, knows, moment
from tidings.concepts.tree import Tree
from tidings.concepts.units import AttributeUnit, Currencies, Units

__all__ = [
    "AttributeUnit",
    "Currencies",
    "Declared",
    "Derived",
    "Ontology",
    "Regions",
    "Tree",
    "Units",
    "check_surroundings",
    "declared",
    "did_you_mean",
    "fold",
    "knows",
    "moment",
    "nearest",
]
