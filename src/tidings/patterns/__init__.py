"""Patterns over time: `PatternSet` compiles them, `Run` takes a stream of events through them, observers follow a run.

`definition` says what a pattern means, slowly; everything else is tested against it. `td.Detector`, in
`tidings.forecast`, puts the parts together.
"""

from tidings.patterns.detections import Detection, Detections
from tidings.patterns.pattern_set import PatternCatalog, PatternSet, StreamSettings
from tidings.patterns.run.run import Run

__all__ = ["Detection", "Detections", "PatternCatalog", "PatternSet", "Run", "StreamSettings"]
