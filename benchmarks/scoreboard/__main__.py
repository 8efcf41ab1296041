"""`python -m benchmarks.scoreboard`."""

import sys

from benchmarks.scoreboard.run import main

sys.exit(main())
