"""Where events come from: files and Kafka, decoded into declared columns."""
