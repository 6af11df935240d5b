"""The reader of tables: encodings, separators, comments, decimal signs, dates, and files of numbers."""
