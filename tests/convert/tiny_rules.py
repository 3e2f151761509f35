"""Which of tests/models/tiny one of the formats cannot hold: folder, and part of the line that says why."""
REFUSED = {}  # not as GGUF
LOST = {}  # not back as a folder
