"""Patterns over time: machines merged over many patterns, runs that go through them, and the detector in front.

`definition` says what a pattern means, slowly; everything else is held to it.
"""

from tidings.patterns.detections import Detection, Detections
from tidings.patterns.detector import Detector

__all__ = ["Detection", "Detections", "Detector"]
