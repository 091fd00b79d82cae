"""What a model file may name: the methods, and the small frozen objects that fitted models hold."""

from __future__ import annotations

from typing import Any

from ..baselines import DCNMF, GPMVC, IMG, MIC, PVC, BestSingleView, Concat, ImputedKMeans, ImputedSpectral
from ..counting import ClusterCount
from ..errors import InputTypeError
from ..estimators import GRMF, BridgedGRMF, MultiViewClusterer
from ..neighbors import Search, SearchReport
from ..scaling import Scaling
from ..selection import Selection, Setting, Trial
from ..trust import Agreement, FeatureEffect, Stability, ViewEffects
from ..views._containers import Container

METHODS: dict[str, type[MultiViewClusterer]] = {
    method.__name__: method
    for method in (
        GRMF,
        BridgedGRMF,
        BestSingleView,
        Concat,
        PVC,
        IMG,
        DCNMF,
        GPMVC,
        MIC,
        ImputedSpectral,
        ImputedKMeans,
    )
}

RECORDS: dict[str, type[Any]] = {
    record.__name__: record
    for record in (
        Scaling,
        Setting,
        Trial,
        Selection,
        ClusterCount,
        Container,
        Agreement,
        FeatureEffect,
        Stability,
        ViewEffects,
        Search,
        SearchReport,
    )
}


def method_name(model: Any) -> str:
    """Return the name of a model's method; a class that someone has made from one of ours is not one of ours."""
    kind = type(model)
    if METHODS.get(kind.__name__) is not kind:
        raise InputTypeError(
            f"A model file can hold the methods of gapview ({', '.join(METHODS)}); got a {kind.__name__} from the "
            f"module '{kind.__module__}'. Keep a class of your own with joblib.dump."
        )
    return kind.__name__
