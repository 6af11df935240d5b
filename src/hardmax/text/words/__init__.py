"""From raw texts to rows of word counts."""
