"""The columns that an attribute is read from."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.spark.schema import find_columns


def test_an_attribute_is_read_from_the_column_of_its_name_or_of_a_name_before_a_dot():
    columns = ["seller", "seller.kind", "price", "sell"]
    assert find_columns({"seller.kind", "price"}, columns) == ["seller", "seller.kind", "price"]
