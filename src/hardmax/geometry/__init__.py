"""READING A RUN: who leads, who follows, which clusters, which polytope, and whether the theory holds."""
