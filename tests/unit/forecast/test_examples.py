"""The examples in the docstrings of forecasts are true."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import tidings.forecast

NAMES = [module.name for module in pkgutil.walk_packages(tidings.forecast.__path__, "tidings.forecast.")]


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_module_are_true(name):
    failed, _ = doctest.testmod(import_module(name))
    assert failed == 0
