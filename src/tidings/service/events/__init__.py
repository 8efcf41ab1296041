"""Events over HTTP: bodies become events, events become lines that are safe on disk, or records of a topic.

`bodies` reads a request's body in each of its formats, `intake` checks and completes every event, a writer makes the
lines durable (`folder_writer`, `kafka_writer`), and `recent` looks back at the newest of them.
"""
