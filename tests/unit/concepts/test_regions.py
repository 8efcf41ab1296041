"""Regions: areas by name, from GeoJSON."""

import gzip
import json
import pickle

import pytest

from tidings.concepts import Regions
from tidings.errors import BadRegion, FileError, UnknownRegion
from tidings.model import Point


def square(west, south, side=1):
    ring = [[west, south], [west + side, south], [west + side, south + side], [west, south + side], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def feature(geometry, **rest):
    return {"type": "Feature", "geometry": geometry, **rest}


TOWN = {
    "type": "FeatureCollection",
    "features": [
        feature(square(0, 0), properties={"name": "downtown", "code": 7}),
        feature(square(5, 5), properties={"name": None, "code": 8}, id="harbour"),
        feature(
            {"type": "MultiPolygon", "coordinates": [square(10, 0)["coordinates"], square(20, 0)["coordinates"]]},
            properties={"name": "isles", "code": 9},
        ),
    ],
}


def test_regions_are_named_by_property_or_id():
    regions = Regions.from_dict(TOWN)
    assert list(regions) == ["downtown", "harbour", "isles"]
    assert len(regions) == 3
    assert "downtown" in regions
    assert regions["downtown"].holds(Point(0.5, 0.5))
    assert regions["isles"].holds(Point(20.5, 0.5))
    assert list(Regions.from_dict(TOWN, name="code")) == ["7", "8", "9"]


def test_feature_or_bare_polygon_is_a_file_too(tmp_path):
    (tmp_path / "old_town.geojson").write_text(json.dumps(square(0, 0)), encoding="utf-8")
    (tmp_path / "all.json.gz").write_bytes(gzip.compress(json.dumps(TOWN).encode()))
    assert list(Regions.load(tmp_path / "old_town.geojson")) == ["old_town"]
    assert list(Regions.load(tmp_path / "all.json.gz", name="code")) == ["7", "8", "9"]
    assert list(Regions.from_dict(feature(square(0, 0), id=3))) == ["3"]


def test_unknown_region_is_suggested():
    with pytest.raises(UnknownRegion, match="unknown region `dwntown`; did you mean `downtown`"):
        Regions.from_dict(TOWN)["dwntown"]
    with pytest.raises(UnknownRegion, match="no regions are given"):
        Regions()["x"]


def test_height_is_set_aside():
    high = square(0, 0)
    high["coordinates"][0] = [[*place, 120] for place in high["coordinates"][0]]
    assert Regions.from_dict(feature(high, id="a"))["a"] == Regions.from_dict(feature(square(0, 0), id="a"))["a"]


@pytest.mark.parametrize(
    ("geometry", "reason"),
    [
        (None, "it has no geometry"),
        ({"type": "Point", "coordinates": [0, 0]}, "a Polygon or a MultiPolygon, not a Point"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}, "not valid"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0]]]}, "at least four places"),
        ({"type": "Polygon", "coordinates": [["a", "b", "c", "a"]]}, "two numbers"),
        ({"type": "Polygon", "coordinates": [3]}, "not lists of rings"),
        ({"type": "Polygon", "coordinates": []}, "at least one polygon"),
        ({"type": "Polygon"}, "not a Polygon|no geometry|coordinates"),
    ],
)
def test_bad_outline_is_refused_by_name(geometry, reason):
    with pytest.raises(BadRegion, match=reason) as error:
        Regions.from_dict(feature(geometry, id="harbour"))
    assert "the region `harbour`" in str(error.value)


def test_all_bad_regions_are_told_together():
    bad = {
        "type": "FeatureCollection",
        "features": [feature(None, id=1), feature(square(0, 0)), 3, feature(None, id=4)],
    }
    with pytest.raises(BadRegion) as error:
        Regions.from_dict(bad)
    assert len(error.value.mistakes) == 4
    assert "feature 1 has neither a property `name` nor an id" in str(error.value)


def test_name_given_twice_is_refused():
    twice = {"type": "FeatureCollection", "features": [feature(square(0, 0), id="a"), feature(square(3, 3), id="a")]}
    with pytest.raises(BadRegion, match="`a` is given twice"):
        Regions.from_dict(twice)


def test_what_is_no_geojson_is_refused(tmp_path):
    with pytest.raises(BadRegion, match="GeoJSON"):
        Regions.from_dict({"type": "Topology"})
    (tmp_path / "r.geojson").write_text("[1", encoding="utf-8")
    with pytest.raises(FileError, match=r"r\.geojson"):
        Regions.load(tmp_path / "r.geojson")


def test_regions_round_trip_pickle_and_compare_by_content():
    regions = Regions.from_dict(TOWN)
    assert Regions.from_dict(json.loads(json.dumps(regions.to_dict()))) == regions
    assert pickle.loads(pickle.dumps(regions)) == regions
    assert hash(pickle.loads(pickle.dumps(regions))) == hash(regions)
    assert regions != Regions()
