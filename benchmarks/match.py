"""What brute force costs for each pair of event and filter: `python -m benchmarks.match`.

Car ads against saved searches (seeded), on one core. The baseline in the same run is the least that a loop
over filters can do in Python: look up one attribute and compare it.
"""

from __future__ import annotations

import argparse

import tidings as td
from tidings.bench.harness.results import describe_machine
from tidings.bench.harness.timing import time_work
from tidings.bench.workloads import NOW, car_ads, saved_searches


def main() -> None:
    """Measure and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--searches", type=int, default=3000)
    options.add_argument("--ads", type=int, default=100)
    options.add_argument("--quick", action="store_true", help="a tenth of the work, for a smoke test")
    arguments = options.parse_args()
    share = 10 if arguments.quick else 1
    report(arguments.searches // share, arguments.ads // share)


def report(searches: int, ads: int) -> None:
    """Measure `ads` events against `searches` filters."""
    subscriptions, events = saved_searches(searches, seed=1), car_ads(ads, seed=2)
    matcher = td.Matcher("brute", now=NOW)
    loading = time_work(lambda: td.Matcher("brute", now=NOW).add_many(subscriptions), repeat=3)
    matcher.add_many(subscriptions)
    matching = time_work(lambda: matcher.match_many(events), repeat=5)
    lookups = [lambda event, n=number: event.get("price") == n for number in range(searches)]
    least = time_work(lambda: [[look(event) for look in lookups] for event in events], repeat=5)
    pairs = searches * ads
    matches = len(matcher.match_many(events)) / ads
    print(f"match: {ads:,} ads, {searches:,} searches, {matches:.0f} matches an ad; {describe_machine()}")
    print(f"  load a search      {loading.median / searches * 1e6:7.1f} us  +-{loading.spread:.0%}")
    print(f"  judge a pair       {matching.median / pairs * 1e6:7.2f} us  +-{matching.spread:.0%}")
    print(f"  one look-up        {least.median / pairs * 1e6:7.2f} us  +-{least.spread:.0%}  (baseline)")


if __name__ == "__main__":
    main()
