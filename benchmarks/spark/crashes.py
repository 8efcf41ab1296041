"""The crash tests, so many times in a row: processes are killed at other moments each time, and all must be green.

python -m benchmarks.spark.crashes --times 10
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

TESTS = ("tests/spark/pipeline/test_crash.py", "tests/spark/test_local_cluster.py")


def main() -> int:
    """Run them, print each result, and stop at the first failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--keep", type=Path, default=None, help="folder for what each run said")
    arguments = parser.parse_args()
    for number in range(1, arguments.times + 1):
        begin_s = time.monotonic()
        done = subprocess.run(  # noqa: S603 - our own tests
            [sys.executable, "-m", "pytest", "-q", *TESTS], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if arguments.keep is not None:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            (arguments.keep / f"{number}.log").write_text(done.stdout + done.stderr)
        last = done.stdout.strip().splitlines()[-1:]
        print(f"{number:>3} of {arguments.times}: {time.monotonic() - begin_s:6.1f} s  {' '.join(last)}", flush=True)
        if done.returncode:
            print(done.stdout[-8000:], file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
