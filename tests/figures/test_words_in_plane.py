"""Words in the plane: the horizontal coordinate is the one that the decoder reads, so it determines the logit."""

import numpy as np
import pytest

import hardmax as hm
from hardmax.drawing.words import words_in_plane
from hardmax.figures.text import word_map
from hardmax.interpolation.evaluation.running import every_moment, journey
from hardmax.text.explaining.corpus_statistics import survey
from made_up_texts import opinions, topics


@pytest.fixture(scope="module", params=[1, 2, 3, 5])
def model(request):
    """A small model of two classes in this many coordinates."""
    texts, labels = opinions(40)
    return hm.LeaderClassifier(request.param, epochs=3, random_state=0).fit(texts, labels)


def test_the_mean_gives_the_logit_back(model):
    why = model.explain("a wonderful superb plot and a dull scene")
    placed = words_in_plane(why)
    size = float(np.linalg.norm(why.decoder[0]))
    assert size * placed.mean[-1, 0] + why.bias[0] == pytest.approx(why.logits[0])
    assert size * placed.boundary + why.bias[0] == pytest.approx(0.0)
    assert placed.path.shape == (len(why.path), len(why.words), 2)


def test_lengths_across_are_never_stretched(model):
    why = model.explain("a wonderful superb plot and a dull scene")
    if why.path.shape[2] > 1:
        flat, full = (np.linalg.norm(path[1:] - path[:-1], axis=2) for path in (words_in_plane(why).path, why.path))
        assert (flat <= full + 1e-9).all()
        if why.path.shape[2] == 2:
            assert flat == pytest.approx(full)


def test_ranks_name_the_leaders_that_words_follow(model):
    why = model.explain("a wonderful superb plot and a dull scene")
    placed = words_in_plane(why)
    for k, rank in enumerate(placed.ranks):
        assert why.leaders[rank].word == why.words[why.follows[k]]
    assert [why.words[k] for k in np.flatnonzero(placed.leads)] == [
        word for word in why.words if word in {leader.word for leader in why.leaders}
    ]


def test_several_classes_have_no_boundary_and_a_map_names_the_frequent_leaders():
    texts, labels = topics(60)
    model = hm.LeaderClassifier(epochs=3, random_state=0).fit(texts, labels)
    assert words_in_plane(model.explain(texts[0])).boundary is None
    found = word_map(survey(model, texts), top=5)
    assert found.boundary is None
    counts = found.leads[found.leaders]
    assert (np.diff(counts) <= 0).all()
    assert counts[0] == found.leads.max()


def test_nothing_known_cannot_be_placed(model):
    with pytest.raises(hm.InputError, match="must hold words"):
        words_in_plane(model.explain("xqzt"))


def test_every_moment_begins_at_the_inputs_and_ends_at_the_targets():
    net = hm.interpolate([[[0, 0], [1, 0]], [[0, 0], [0, 1]]], [[[1, 1]], [[2, 2]]])
    moments = every_moment(net, journey(net))
    assert len(moments) == 2 * len(net.blocks) + 1
    assert moments[0].positions.tolist() == [[0, 0], [1, 0], [0, 0], [0, 1]]
    assert moments[-1].positions == pytest.approx(np.array([[1, 1], [1, 1], [2, 2], [2, 2]]))
    assert [moment.block for moment in moments[-2:]] == [len(net.blocks)] * 2
