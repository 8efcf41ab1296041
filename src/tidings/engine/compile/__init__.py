"""From filters to rows of codes: drafts, columns, encoders, code spaces."""
