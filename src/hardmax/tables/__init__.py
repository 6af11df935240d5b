"""One reader of tables: encodings, dialects, dates and numbers."""
