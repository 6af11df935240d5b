"""Infinite depth of hardmax attention with masks, several heads and steps, in floats and in rationals."""

from .exact import ExactFamilyProcess as ExactFamilyProcess
from .process import FamilyProcess as FamilyProcess
from .process import search_in_sight as search_in_sight
