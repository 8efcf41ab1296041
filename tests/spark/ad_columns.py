"""The columns of the workload `car ads`, in Spark's words."""

ADS = """
    id BIGINT, make STRING, model STRING, year INT, price STRING, odometer BIGINT, fuel STRING, color STRING,
    tags ARRAY<STRING>, posted TIMESTAMP, spot STRUCT<lon: DOUBLE, lat: DOUBLE>,
    seller STRUCT<kind: STRING, name: STRING, rating: DOUBLE>
"""
"""A price comes as text, since sellers write anything; the schema of a test declares it as a number."""
