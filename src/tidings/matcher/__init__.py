"""`td.Matcher`: what users hold. Subscriptions in any notation go in, events go in, ids come out."""

from tidings.matcher.matcher import Matcher
from tidings.matcher.why import Explanation

__all__ = ["Explanation", "Matcher"]
