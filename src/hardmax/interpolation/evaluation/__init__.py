"""Evaluation of networks: certificates, verification, running, counts."""
