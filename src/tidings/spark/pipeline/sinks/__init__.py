"""Where a micro-batch is written: files, Kafka, the console, a function."""
