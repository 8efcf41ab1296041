"""`tidings pattern`: one module for each command, and what they share."""
