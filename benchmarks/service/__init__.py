"""What the subscription service takes, beside a bare route and beside raw SQL, in one run."""
