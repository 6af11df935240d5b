"""Text classification whose reasons are the leader words of a document."""

from .classifier import LeaderClassifier as LeaderClassifier
from .explanation import Explanation as Explanation
from .vocabulary import Vocabulary as Vocabulary
from .words import Tokeniser as Tokeniser
