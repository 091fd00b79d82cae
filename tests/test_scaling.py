"""The scale that suits a view."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from gapview.scaling import suitable_scale


def test_scores_of_as_many_principal_components_as_samples_are_not_standardised():
    values = np.random.RandomState(0).normal(size=(80, 100)) * np.geomspace(100, 1, 100)
    scores = PCA().fit_transform(values)
    assert suitable_scale(values[:, :6] * [1, 1, 1, 1, 1, 1000]) == "standard+unit"
    assert suitable_scale(scores[:, :79]) == "center+unit"  # all samples would be equally distant
    assert suitable_scale(scores[:50, :79]) == "center+unit"
    assert suitable_scale(scores[:5, :79]) == "standard+unit"  # too few to compare
