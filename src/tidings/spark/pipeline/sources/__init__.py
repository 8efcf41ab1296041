"""Sources of events: files and Kafka, decoded into declared columns."""
