"""The large public taxonomies, where the sample data lies beside the checkout."""

import pickle
import time

import pytest

from tidings.concepts import Declared, Ontology, Regions, Tree
from tidings.errors import AmbiguousConcept, BadRegion, OntologyError
from tidings.model import Kind


@pytest.fixture(scope="module")
def taxonomies(sample_data):
    return sample_data / "taxonomies"


def load_tree(path, **options):
    start = time.perf_counter()
    tree = Tree.load(path, **options)
    # Fractions of a second on an idle core; ten times that is still "in seconds" on a busy one.
    assert time.perf_counter() - start < 20
    return tree


@pytest.fixture(scope="module")
def food(taxonomies):
    return load_tree(taxonomies / "openfoodfacts_food_categories.txt.gz", lenient=True)


def test_whole_shopify_tree_loads(taxonomies):
    tree = load_tree(taxonomies / "shopify_categories_en.txt.gz")
    assert len(tree) == 14_606
    assert all(len(tree.ranges(name)) == 1 for name in tree)
    assert tree.is_a("Bird Cage Bird Baths", "Animals & Pet Supplies")
    assert (
        tree.canonical("gid://shopify/TaxonomyCategory/ap-2-1")
        == "Animals & Pet Supplies > Pet Supplies > Bird Supplies"
    )
    with pytest.raises(AmbiguousConcept):
        tree.canonical(tree.shared_spellings()[0])


def test_whole_google_tree_loads(taxonomies):
    tree = load_tree(taxonomies / "google_product_taxonomy_2021-09-21.tsv.gz")
    assert len(tree) == 5_595
    assert tree.is_a("499954", "Pet Supplies")


def test_open_food_facts_loads_as_a_graph(food):
    assert len(food) == 14_615
    several = [name for name in food if len(food.parents(name)) > 1]
    assert len(several) > 2_600
    assert all(food.is_a(name, above) for name in several for above in food.parents(name))
    assert food.canonical("Bébiételek") == "en:baby-foods"
    assert sum(len(food.ranges(name)) for name in food) / len(food) < 1.3


def test_what_open_food_facts_leaves_undefined_is_told(food, taxonomies):
    with pytest.raises(OntologyError, match="line 99792: `en:frozen-pasta-dishes` lies under `en:frozen-meals`"):
        Tree.load(taxonomies / "openfoodfacts_food_categories.txt.gz")
    assert len(food.dropped) == 4


def test_esco_skills_load_from_named_columns(taxonomies):
    tree = load_tree(taxonomies / "esco_v1.1.1_skills_hierarchy.csv.gz", columns=["PARENTID", "CHILDID"])
    assert len(tree) == 14_536
    assert sum(len(tree.parents(name)) > 1 for name in tree) == 4_646


def test_acm_classification_loads_from_skos(taxonomies):
    pytest.importorskip("rdflib")
    tree = load_tree(taxonomies / "acm_ccs2012.skos.xml.gz")
    assert len(tree) == 2_113
    assert tree.is_a("10010405.10010469.10010473", "Applied computing")


def test_large_ontology_pickles_and_round_trips(food):
    ontology = Ontology(trees={"food": food}, attributes={"category": Declared(Kind.CONCEPT, "food")})
    assert pickle.loads(pickle.dumps(ontology)) == ontology
    assert Ontology.from_dict(ontology.to_dict()) == ontology


def test_countries_and_counties_load_as_regions(sample_data):
    countries = Regions.load(sample_data / "polygons" / "ne_50m_admin_0_countries.geojson.gz", name="NAME")
    assert len(countries) == 242
    assert len(Regions.load(sample_data / "polygons" / "us_counties_fips.geojson.gz")) > 3_000
    with pytest.raises(BadRegion, match="the region `Sudan`: the polygon is not valid"):
        Regions.load(sample_data / "polygons" / "ne_110m_admin_0_countries.geojson.gz", name="NAME")
