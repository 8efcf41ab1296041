"""`td.Matcher`: what users hold. Subscriptions in any notation go in, events go in, ids come out.

`td.Live` is the same for subscriptions that change while streams run: a folder of versions.
"""

from tidings.matcher.live.live import Live
from tidings.matcher.matcher import Matcher
from tidings.matcher.registry import matchers
from tidings.matcher.why import Explanation

__all__ = ["Explanation", "Live", "Matcher", "matchers"]
