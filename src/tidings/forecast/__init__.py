"""Forecasts: how likely a pattern is to complete, and when; models that are counted, merged and kept.

`courses` says which cells a pattern goes through, `learning` counts what happens there, `predicting` turns counts into
probabilities, `scoring` says how good they are; `detector` is what users see.
"""

from tidings.forecast.detector import Detector
from tidings.forecast.forecasts import Forecast, Forecasts
from tidings.forecast.horizon import Horizon
from tidings.forecast.learning.training import train
from tidings.forecast.model import Model
from tidings.forecast.scoring.scores import Score, score

__all__ = ["Detector", "Forecast", "Forecasts", "Horizon", "Model", "Score", "score", "train"]
