"""The cars, cities and words that the car-ad workload draws from, most popular first."""

from __future__ import annotations

from typing import Final, NamedTuple


class Car(NamedTuple):
    """A model, its price when new, and whether it is electric."""

    make: str
    model: str
    price: int
    electric: bool = False


class City(NamedTuple):
    """A city and its coordinates, in degrees."""

    name: str
    lon: float
    lat: float


_RANGES: Final = {
    "ford": {"focus": 26_000, "fiesta": 18_000, "mondeo": 33_000, "kuga": 36_000, "ranger": 42_000, "puma": 27_000},
    "volkswagen": {"golf": 29_000, "polo": 21_000, "passat": 38_000, "tiguan": 39_000, "up": 14_000, "caddy": 31_000},
    "toyota": {"corolla": 27_000, "yaris": 20_000, "rav4": 40_000, "prius": 37_000, "hilux": 45_000, "aygo": 15_000},
    "opel": {"corsa": 19_000, "astra": 26_000, "insignia": 34_000, "mokka": 27_000, "zafira": 30_000},
    "renault": {"clio": 19_000, "megane": 27_000, "captur": 25_000, "twingo": 14_000, "kangoo": 27_000},
    "bmw": {"320": 47_000, "118": 34_000, "520": 58_000, "x3": 60_000, "x5": 86_000, "z4": 55_000},
    "skoda": {"octavia": 29_000, "fabia": 19_000, "superb": 40_000, "kodiaq": 41_000, "karoq": 33_000},
    "audi": {"a4": 45_000, "a3": 35_000, "a6": 58_000, "q5": 57_000, "q3": 42_000, "tt": 49_000},
    "peugeot": {"208": 21_000, "308": 28_000, "3008": 37_000, "5008": 41_000, "107": 12_000},
    "honda": {"civic": 30_000, "jazz": 24_000, "cr-v": 41_000, "accord": 35_000},
    "mercedes": {"c 200": 48_000, "a 180": 36_000, "e 220": 61_000, "glc": 62_000, "vito": 44_000},
    "hyundai": {"i30": 25_000, "i20": 19_000, "tucson": 35_000, "santa fe": 48_000},
    "fiat": {"500": 17_000, "panda": 15_000, "tipo": 21_000, "ducato": 38_000},
    "kia": {"ceed": 25_000, "rio": 18_000, "sportage": 35_000, "picanto": 14_000},
    "nissan": {"qashqai": 33_000, "micra": 18_000, "juke": 25_000, "x-trail": 41_000},
    "volvo": {"v60": 46_000, "xc60": 58_000, "v40": 33_000, "xc90": 79_000},
    "mazda": {"3": 27_000, "cx-5": 38_000, "6": 36_000, "mx-5": 34_000},
    "dacia": {"duster": 21_000, "sandero": 13_000, "logan": 13_000},
    "seat": {"leon": 27_000, "ibiza": 19_000, "ateca": 33_000},
    "subaru": {"outback": 43_000, "forester": 40_000, "impreza": 29_000},
    "lada": {"niva": 12_000, "vesta": 13_000},
    "porsche": {"911": 128_000, "cayenne": 95_000, "macan": 80_000},
    "suzuki": {"swift": 18_000, "vitara": 27_000, "jimny": 24_000},
}

_ELECTRIC: Final = {
    "tesla": {"model 3": 43_000, "model y": 48_000, "model s": 95_000},
    "renault": {"zoe": 35_000},
    "nissan": {"leaf": 36_000},
}


def _sort_by_popularity() -> tuple[Car, ...]:
    """Interleave the makes: mostly, each make's first model comes before any make's second."""
    ranked: list[tuple[int, Car]] = []
    for electric, makes in ((False, _RANGES), (True, _ELECTRIC)):
        for place, (make, models) in enumerate(makes.items(), start=8 if electric else 1):
            ranked += [
                (place * (rank + 1), Car(make, model, price, electric))
                for rank, (model, price) in enumerate(models.items())
            ]
    return tuple(car for _, car in sorted(ranked, key=lambda pair: pair[0]))


MODELS: Final = _sort_by_popularity()
"""Every model, the most popular first."""

CITIES: Final = (
    City("london", -0.1276, 51.5072), City("berlin", 13.405, 52.52), City("madrid", -3.7038, 40.4168),
    City("rome", 12.4964, 41.9028), City("paris", 2.3522, 48.8566), City("vienna", 16.3738, 48.2082),
    City("hamburg", 9.9937, 53.5511), City("warsaw", 21.0122, 52.2297), City("budapest", 19.0402, 47.4979),
    City("barcelona", 2.1734, 41.3851), City("munich", 11.582, 48.1351), City("milan", 9.19, 45.4642),
    City("prague", 14.4378, 50.0755), City("cologne", 6.9603, 50.9375), City("stockholm", 18.0686, 59.3293),
    City("amsterdam", 4.9041, 52.3676), City("zagreb", 15.9819, 45.815), City("oslo", 10.7522, 59.9139),
    City("lisbon", -9.1393, 38.7223), City("helsinki", 24.9384, 60.1699),
)  # fmt: skip
"""Where ads are posted from, the most populous first."""

COLORS: Final = ("black", "grey", "white", "silver", "blue", "red", "green", "brown", "orange", "yellow")
"""Colours, the most common first."""

FUELS: Final = ("petrol", "diesel", "hybrid", "gas")
"""Fuels; `electric` follows from the model."""

TAGS: Final = (
    "air conditioning", "one owner", "navigation", "warranty", "tow bar", "automatic", "leather", "sunroof",
    "winter tyres", "all-wheel drive", "accident", "vintage",
)  # fmt: skip
"""Tags that sellers put on ads."""
