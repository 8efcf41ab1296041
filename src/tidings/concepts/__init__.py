"""What words mean: concept trees, attribute trees, synonyms, units, derived attributes, named regions.

`Ontology` holds them together and answers; `Tree` is one hierarchy, `Regions` are areas by name. Pint,
shapely, Lark and rdflib are loaded by the first thing that needs them, never by importing this package.
"""

from tidings.concepts.derived.attributes import Derived
from tidings.concepts.ontology import Ontology
from tidings.concepts.ontology_declaration import Declared
from tidings.concepts.regions import Regions
from tidings.concepts.spelling import did_you_mean, find_nearest, fold
from tidings.concepts.taxonomies.tree import Tree
from tidings.concepts.units import AttributeUnit, Currencies, Units
from tidings.concepts.vocabulary import Vocabulary, parse_now

__all__ = [
    "AttributeUnit",
    "Currencies",
    "Declared",
    "Derived",
    "Ontology",
    "Regions",
    "Tree",
    "Units",
    "Vocabulary",
    "did_you_mean",
    "find_nearest",
    "fold",
    "parse_now",
]
