"""The command line: one thin command per capability. Nothing heavy is imported before a command runs."""
