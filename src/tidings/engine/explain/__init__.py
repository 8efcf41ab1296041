"""What `explain` reports: estimated costs, memory, and the plan in words."""
