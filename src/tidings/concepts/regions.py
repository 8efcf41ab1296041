"""Named areas from GeoJSON, for `spot within @downtown`.

The name of a region is a property of its feature (`name`, unless the caller names another), or else the feature's id.
Outlines are checked when they are loaded, so that no filter can fail because of one; all bad regions of a file are
reported together.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.concepts.mistakes import refuse
from tidings.concepts.spelling import did_you_mean
from tidings.concepts.text_files import get_stem, read_table
from tidings.errors import BadRegion, UnknownRegion
from tidings.model.areas import Area, build_area

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Regions:
    """Areas by name: `td.Regions.load("regions.geojson")`.

    >>> square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    >>> regions = Regions.from_dict({"type": "Feature", "id": "old town", "geometry": square})
    >>> list(regions)
    ['old town']
    """

    __slots__ = ("_areas", "_hash")

    def __init__(self, areas: Mapping[str, Area] | None = None) -> None:
        self._areas = dict(areas or {})
        self._hash: int | None = None

    @classmethod
    def load(cls, path: str | Path, *, name: str = "name") -> Regions:
        """Read a GeoJSON file, plain or gzipped; `name` is the property that names a region."""
        path = Path(path)
        return cls.from_dict(read_table(path), name=name, unnamed=get_stem(path))

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], *, name: str = "name", unnamed: str | None = None) -> Regions:
        """Read decoded GeoJSON; `unnamed` is the name of a geometry that is not in a feature."""
        areas: dict[str, Area] = {}
        mistakes: list[str] = []
        for index, feature in enumerate(_list_features(table)):
            try:
                region, area = _read_region(feature, name, unnamed, index=index)
                if region in areas:
                    mistakes.append(f"the region `{region}` is given twice; `name=` chooses another property")
                areas[region] = area
            except BadRegion as mistake:
                mistakes.append(str(mistake))
        refuse(mistakes, BadRegion)
        return cls(areas)

    def to_dict(self) -> dict[str, Any]:
        """Return a GeoJSON feature collection."""
        return {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "properties": {"name": name}, "geometry": area.to_geojson()}
                for name, area in self._areas.items()
            ],
        }

    def __getitem__(self, name: str) -> Area:
        """Return the area of that name."""
        area = self._areas.get(name)
        if area is None:
            hint = did_you_mean(name, self._areas) if self._areas else "; no regions are given"
            msg = f"unknown region `{name}`{hint}"
            raise UnknownRegion(msg, region=name)
        return area

    def __contains__(self, name: object) -> bool:
        return name in self._areas

    def __iter__(self) -> Iterator[str]:
        return iter(self._areas)

    def __len__(self) -> int:
        return len(self._areas)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Regions) and self._areas == other._areas)

    def __hash__(self) -> int:
        # By the names alone: an outline may have thousands of places, and `__eq__` compares them where it must.
        if self._hash is None:
            self._hash = hash(frozenset(self._areas))
        return self._hash

    def __reduce__(self) -> tuple[type[Regions], tuple[dict[str, Area]]]:
        """Pickle the areas alone: text hashes differently in every process."""
        return Regions, (self._areas,)

    def __repr__(self) -> str:
        names = list(self._areas)
        return f"<Regions {', '.join(names[:5])}{', ...' * (len(names) > 5)}>"


def _list_features(table: Mapping[str, Any]) -> Iterable[Any]:
    match table:
        case {"type": "FeatureCollection", "features": list(features)}:
            return features
        case {"type": "Feature"}:
            return [table]
        case {"type": "Polygon" | "MultiPolygon"}:
            return [{"type": "Feature", "geometry": table}]
    msg = "regions are a GeoJSON FeatureCollection, a Feature, a Polygon or a MultiPolygon"
    raise BadRegion(msg)


def _read_region(feature: Any, name: str, unnamed: str | None, *, index: int) -> tuple[str, Area]:
    if not isinstance(feature, dict):
        msg = f"feature {index}: not a GeoJSON feature but {feature!r:.60}"
        raise BadRegion(msg)
    properties = feature.get("properties")
    region = properties.get(name) if isinstance(properties, dict) else None
    region = feature.get("id", unnamed) if region is None else region
    if isinstance(region, bool) or not isinstance(region, str | int | float) or region == "":
        msg = f"feature {index} has neither a property `{name}` nor an id; `name=` chooses another property"
        raise BadRegion(msg)
    try:
        return str(region), _read_area(feature.get("geometry"))
    except BadRegion as mistake:
        msg = f"the region `{region}`: {mistake}"
        raise BadRegion(msg, region=str(region)) from mistake


def _read_area(geometry: Any) -> Area:
    match geometry:
        case {"type": "Polygon", "coordinates": list(rings)}:
            return _build_area([rings])
        case {"type": "MultiPolygon", "coordinates": list(polygons)}:
            return _build_area(polygons)
        case {"type": str(other)}:
            msg = f"a region is a Polygon or a MultiPolygon, not a {other}"
        case _:
            msg = "it has no geometry"
    raise BadRegion(msg)


def _build_area(polygons: list[Any]) -> Area:
    try:
        # GeoJSON allows a height after longitude and latitude; regions are flat.
        return build_area([[[place[:2] for place in ring] for ring in rings] for rings in polygons])
    except (TypeError, KeyError):
        msg = "its coordinates are not lists of rings of places"
        raise BadRegion(msg) from None
